package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nsqio/go-nsq"
)

func requeueWithDelay(e *env) {
	_, box := e.consumer("c", e.config(), func(b *inbox, m *nsq.Message) error {
		if s := b.add(m); s.attempts == 1 {
			m.RequeueWithoutBackoff(150 * time.Millisecond)
		}
		return nil
	})
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("again")), "publish")
	got := box.wait(2)
	need(got[1].attempts == 2 && got[1].id == got[0].id && got[1].stamp == got[0].stamp, "second delivery %+v", got[1])
	after := got[1].at.Sub(got[0].at)
	need(after >= 140*time.Millisecond, "redelivered after %v", after)
	e.drained("c")
	s, _ := e.stats("c")
	need(s.RequeueCount == 1 && s.TimeoutCount == 0, "stats %+v", s)
}

func requeueAtOnce(e *env) {
	_, box := e.consumer("c", e.config(), func(b *inbox, m *nsq.Message) error {
		if s := b.add(m); s.attempts < 4 {
			m.RequeueWithoutBackoff(0)
		}
		return nil
	})
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("again")), "publish")
	got := box.wait(4)
	for i, s := range got {
		need(int(s.attempts) == i+1 && s.id == got[0].id, "delivery %d: %+v", i+1, s)
	}
	e.drained("c")
}

// counting is go-nsq's exponential strategy, but it tells how often it was asked.
type counting struct{ asked int32 }

func (c *counting) Calculate(int) time.Duration {
	atomic.AddInt32(&c.asked, 1)
	return 50 * time.Millisecond
}

// backoff: failing handlers take the consumer to RDY 0, then to RDY 1, then back to full speed.
func backoff(e *env) {
	strategy := &counting{}
	c := e.config()
	c.BackoffStrategy = strategy
	c.MaxBackoffDuration = time.Second
	c.MaxRequeueDelay = 200 * time.Millisecond
	c.DefaultRequeueDelay = 20 * time.Millisecond
	var failures int32
	_, box := e.consumer("c", c, func(b *inbox, m *nsq.Message) error {
		if atomic.AddInt32(&failures, 1) <= 5 {
			return errors.New("wanted")
		}
		b.add(m)
		return nil
	})
	p := e.producer(e.config())
	for _, b := range bodies(40) {
		needNoError(p.Publish(e.topic, b), "publish")
	}
	got := box.wait(40)
	texts := map[string]bool{}
	for _, s := range got {
		texts[s.body] = true
	}
	need(len(texts) == 40, "%d different bodies finished instead of 40", len(texts))
	need(atomic.LoadInt32(&strategy.asked) > 0, "the consumer never backed off")
	e.drained("c")
	s, _ := e.stats("c")
	need(s.RequeueCount == 5, "requeue_count %d instead of 5", s.RequeueCount)
}

func touch(e *env) {
	c := e.config()
	c.MsgTimeout = 4 * time.Second
	_, box := e.consumer("c", c, func(b *inbox, m *nsq.Message) error {
		b.add(m)
		for i := 0; i < 6; i++ {
			time.Sleep(time.Second)
			m.Touch()
		}
		return nil
	})
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("slow")), "publish")
	box.wait(1)
	e.drained("c")
	need(len(box.all()) == 1, "%d deliveries instead of one", len(box.all()))
	s, _ := e.stats("c")
	need(s.TimeoutCount == 0, "timeout_count %d", s.TimeoutCount)
}

func messageTimeout(e *env) {
	c := e.config()
	c.MsgTimeout = 4 * time.Second
	_, box := e.consumer("c", c, func(b *inbox, m *nsq.Message) error {
		if s := b.add(m); s.attempts == 1 {
			m.DisableAutoResponse() // never answered
		}
		return nil
	})
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("forgotten")), "publish")
	got := box.wait(2)
	after := got[1].at.Sub(got[0].at)
	need(got[1].attempts == 2 && got[1].id == got[0].id, "second delivery %+v", got[1])
	need(after > 3900*time.Millisecond, "redelivered after %v", after)
	// A counter is shown once no crash can take it back, which may be a checkpoint later.
	e.settled("c", "one timeout counted", func(s channelStats, _ bool) bool {
		return s.TimeoutCount == 1 && s.RequeueCount == 0
	})
}

func maxInFlight(e *env) {
	c := e.config()
	c.MaxInFlight = 2
	var now, most int32
	_, box := e.consumer("c", c, func(b *inbox, m *nsq.Message) error {
		n := atomic.AddInt32(&now, 1)
		for {
			seen := atomic.LoadInt32(&most)
			if n <= seen || atomic.CompareAndSwapInt32(&most, seen, n) {
				break
			}
		}
		time.Sleep(10 * time.Millisecond)
		s, _ := e.stats("c")
		if s.InFlight > 2 {
			atomic.StoreInt32(&most, 99)
		}
		atomic.AddInt32(&now, -1)
		b.add(m)
		return nil
	})
	needNoError(e.producer(e.config()).MultiPublish(e.topic, bodies(30)), "multi-publish")
	needExactly(box.wait(30), 30)
	need(atomic.LoadInt32(&most) <= 2, "more than 2 in flight")
}

func fanOut(e *env) {
	_, a := e.consumer("a", e.config(), finish)
	_, b := e.consumer("b", e.config(), finish)
	needNoError(e.producer(e.config()).MultiPublish(e.topic, bodies(60)), "multi-publish")
	left, right := a.wait(60), b.wait(60)
	needExactly(left, 60)
	needExactly(right, 60)
	byBody := map[string]string{}
	for _, s := range left {
		byBody[s.body] = s.id
	}
	for _, s := range right {
		need(byBody[s.body] == s.id, "two ids for %q", s.body)
	}
}

func twoConsumersShare(e *env) {
	c := e.config()
	c.MaxInFlight = 1
	// Each keeps its first message until the other one has one.
	var lock sync.Mutex
	served, both := map[*inbox]bool{}, make(chan struct{})
	slow := func(b *inbox, m *nsq.Message) error {
		b.add(m)
		lock.Lock()
		if served[b] = true; len(served) == 2 {
			select {
			case <-both:
			default:
				close(both)
			}
		}
		lock.Unlock()
		<-both
		return nil
	}
	_, a := e.consumer("c", c, slow)
	_, b := e.consumer("c", c, slow)
	needNoError(e.producer(e.config()).MultiPublish(e.topic, bodies(200)), "multi-publish")
	end := time.Now().Add(patience)
	for len(a.all())+len(b.all()) < 200 {
		need(time.Now().Before(end), "%d and %d messages of 200", len(a.all()), len(b.all()))
		time.Sleep(10 * time.Millisecond)
	}
	needExactly(append(a.all(), b.all()...), 200)
	need(len(a.all()) > 0 && len(b.all()) > 0, "one consumer got everything")
}

// heartbeats: connections that are silent for several intervals live on, and still work.
func heartbeats(e *env) {
	consumer, box := e.consumer("c", e.config(), finish)
	p := e.producer(e.config())
	needNoError(p.Publish(e.topic, []byte("message 00000")), "publish")
	box.wait(1)
	time.Sleep(6 * time.Second)
	need(consumer.Stats().Connections == 1, "the consumer lost its connection")
	needNoError(p.Publish(e.topic, []byte("message 00001")), "publish after silence")
	needExactly(box.wait(2), 2)
}

// gracefulStop: what is in flight at CLS can still be finished, nothing new comes.
func gracefulStop(e *env) {
	c := e.config()
	c.MaxInFlight = 1
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	consumer, box := e.consumer("c", c, func(b *inbox, m *nsq.Message) error {
		once.Do(func() { close(entered) })
		<-release
		b.add(m)
		return nil
	})
	needNoError(e.producer(e.config()).MultiPublish(e.topic, bodies(3)), "multi-publish")
	<-entered
	consumer.Stop()
	e.settled("c", "closing", func(s channelStats, _ bool) bool { return len(s.ClientDetails) == 1 && s.ClientDetails[0].State == 4 })
	close(release)
	select {
	case <-consumer.StopChan:
	case <-time.After(patience):
		fail("the consumer does not stop")
	}
	need(len(box.all()) == 1, "%d messages handled instead of one", len(box.all()))
	e.settled("c", "two messages left", func(s channelStats, _ bool) bool {
		return s.Depth == 2 && s.InFlight == 0
	})
}

// disconnectRequeues: the connection of a consumer that holds a message is cut; another one gets it.
func disconnectRequeues(e *env) {
	held := make(chan struct{}, 10)
	through, cut := e.relay()
	direct := e.tcp
	e.tcp = through
	_, _ = e.consumer("c", e.config(), func(b *inbox, m *nsq.Message) error {
		m.DisableAutoResponse()
		held <- struct{}{}
		return nil
	})
	e.tcp = direct
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("message 00000")), "publish")
	<-held
	cut()
	e.settled("c", "the cut connection noticed", func(s channelStats, _ bool) bool { return s.ClientCount == 0 })
	_, box := e.consumer("c", e.config(), finish)
	got := box.wait(1)
	need(got[0].attempts == 2, "attempts %d", got[0].attempts)
}

// sampling: half of the messages exactly, each once (D-09). nsqd draws for each message, 51 % of them, so there it is a band of five deviations.
func sampling(e *env) {
	count, least, most := 100, 50, 50
	if e.byChance {
		count, least, most = 1000, 430, 590
	}
	c := e.config()
	c.SampleRate = 50
	_, box := e.consumer("c", c, finish)
	needNoError(e.producer(e.config()).MultiPublish(e.topic, bodies(count)), "multi-publish")
	e.settled("c", "drained", func(s channelStats, _ bool) bool {
		return s.Messages == count && s.Depth == 0 && s.InFlight == 0
	})
	got := map[string]bool{}
	for _, s := range box.all() {
		got[s.body] = true
	}
	need(len(got) == len(box.all()) && len(got) >= least && len(got) <= most, "%d of %d delivered at rate 50, %d different", len(box.all()), count, len(got))
}

func ephemeralChannel(e *env) {
	e.postTopic("create")
	e.postChannel("create", "keep")
	consumer, box := e.consumer("gone#ephemeral", e.config(), finish)
	p := e.producer(e.config())
	needNoError(p.Publish(e.topic, []byte("message 00000")), "publish")
	needExactly(box.wait(1), 1)
	consumer.Stop()
	<-consumer.StopChan
	e.settled("gone#ephemeral", "channel gone", func(_ channelStats, there bool) bool { return !there })
	needNoError(p.Publish(e.topic, []byte("missed")), "publish")
	_, again := e.consumer("gone#ephemeral", e.config(), finish)
	needNoError(p.Publish(e.topic, []byte("message 00000")), "publish")
	needExactly(again.wait(1), 1)
}

func channelPause(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	e.postChannel("pause", "c")
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("message 00000")), "publish")
	time.Sleep(400 * time.Millisecond)
	need(len(box.all()) == 0, "a paused Channel delivers")
	s, _ := e.stats("c")
	need(s.Paused && s.Depth == 1, "stats %+v", s)
	e.postChannel("unpause", "c")
	needExactly(box.wait(1), 1)
}

func topicPause(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	e.postTopic("pause")
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("message 00000")), "publish")
	time.Sleep(400 * time.Millisecond)
	need(len(box.all()) == 0, "a paused Topic delivers")
	e.postTopic("unpause")
	needExactly(box.wait(1), 1)
}

func channelEmpty(e *env) {
	e.postTopic("create")
	e.postChannel("create", "c")
	p := e.producer(e.config())
	needNoError(p.MultiPublish(e.topic, bodies(10)), "multi-publish")
	e.settled("c", "stored", func(s channelStats, _ bool) bool { return s.Depth == 10 })
	e.postChannel("empty", "c")
	e.settled("c", "emptied", func(s channelStats, _ bool) bool { return s.Depth == 0 })
	_, box := e.consumer("c", e.config(), finish)
	needNoError(p.Publish(e.topic, []byte("message 00000")), "publish")
	needExactly(box.wait(1), 1)
}
