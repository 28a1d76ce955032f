package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/nsqio/go-nsq"
)

func bodies(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = []byte(fmt.Sprintf("message %05d", i))
	}
	return out
}

// needExactly holds the messages against what was published: each once, ids all different, first attempt.
func needExactly(got []seen, n int) {
	ids, texts := map[string]bool{}, map[string]bool{}
	for _, s := range got {
		need(!ids[s.id], "id %s came twice", s.id)
		need(!texts[s.body], "body %q came twice", s.body)
		need(s.attempts == 1, "attempts %d at the first delivery", s.attempts)
		ids[s.id], texts[s.body] = true, true
	}
	need(len(got) == n, "%d messages instead of %d", len(got), n)
	for _, b := range bodies(n) {
		need(texts[string(b)], "body %q did not come", b)
	}
}

func publishConsumeFinish(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	p := e.producer(e.config())
	needNoError(p.Ping(), "ping")
	before := time.Now()
	for _, b := range bodies(50) {
		needNoError(p.Publish(e.topic, b), "publish")
	}
	got := box.wait(50)
	needExactly(got, 50)
	for _, s := range got {
		stamp := time.Unix(0, s.stamp)
		need(stamp.After(before.Add(-time.Second)) && stamp.Before(time.Now().Add(time.Second)), "timestamp %v", stamp)
	}
	e.drained("c")
	s, _ := e.stats("c")
	need(s.Messages == 50 && s.ClientCount == 1, "stats %+v", s)
	need(strings.HasPrefix(s.ClientDetails[0].UserAgent, "go-nsq/"), "user agent %q", s.ClientDetails[0].UserAgent)
	need(s.ClientDetails[0].Version == "V2", "client version %q", s.ClientDetails[0].Version)
	e.needGranted("c")
}

func publishAsync(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	p := e.producer(e.config())
	done := make(chan *nsq.ProducerTransaction, 1000)
	for _, b := range bodies(1000) {
		needNoError(p.PublishAsync(e.topic, b, done, string(b)), "publish")
	}
	for i := 0; i < 1000; i++ {
		t := <-done
		needNoError(t.Error, "transaction")
		need(t.Args[0] == fmt.Sprintf("message %05d", i), "answer %d belongs to %v", i, t.Args[0])
	}
	needExactly(box.wait(1000), 1000)
	e.drained("c")
}

func multiPublish(e *env) {
	c := e.config()
	c.MaxInFlight = 1
	e.postTopic("create")
	e.postChannel("create", "c")
	p := e.producer(e.config())
	needNoError(p.MultiPublish(e.topic, bodies(100)), "multi-publish")
	e.settled("c", "all counted", func(s channelStats, _ bool) bool { return s.Messages == 100 })
	_, box := e.consumer("c", c, finish)
	needExactly(box.wait(100), 100)
	e.drained("c")
}

func deferredPublish(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	p := e.producer(e.config())
	sent := time.Now()
	needNoError(p.DeferredPublish(e.topic, 3*time.Second, []byte("later")), "deferred publish")
	needNoError(p.Publish(e.topic, []byte("now")), "publish")
	got := box.wait(2)
	need(got[0].body == "now", "the deferred message came first")
	after := got[1].at.Sub(sent)
	need(after >= 2950*time.Millisecond, "deferred message after %v", after)
	need(got[1].attempts == 1, "attempts %d", got[1].attempts)
	e.drained("c")
}

func backlogBeforeFirstChannel(e *env) {
	p := e.producer(e.config())
	needNoError(p.MultiPublish(e.topic, bodies(200)), "multi-publish")
	_, box := e.consumer("first", e.config(), finish)
	needExactly(box.wait(200), 200)
	e.drained("first")
}

func largeMessage(e *env) {
	c := e.config()
	c.MsgTimeout = patience
	_, box := e.consumer("c", c, finish)
	p := e.producer(c)
	text := strings.Repeat("0123456789abcdef", 1<<15) // 512 KiB
	needNoError(p.Publish(e.topic, []byte(text)), "publish")
	got := box.wait(1)
	need(got[0].body == text, "the body of %d bytes came back changed", len(text))
	e.drained("c")
}

// refusedPublishes: the error reaches the caller with its code, and the next connection works.
func refusedPublishes(e *env) {
	refused := func(err error, code string) {
		protocol, is := err.(nsq.ErrProtocol)
		need(is && strings.HasPrefix(protocol.Reason, code), "%v instead of %s", err, code)
	}
	refused(e.producer(e.config()).Publish("not!a!topic", []byte("x")), "E_BAD_TOPIC")
	refused(e.producer(e.config()).Publish(e.topic, nil), "E_BAD_MESSAGE")
	refused(e.producer(e.config()).DeferredPublish(e.topic, 1000*time.Hour, []byte("x")), "E_INVALID")
	needNoError(e.producer(e.config()).Publish(e.topic, []byte("fine")), "publish after refusals")
}

// compressionAskedFor: both compressions carry a round trip.
func compressionAskedFor(e *env) {
	for _, kind := range []string{"snappy", "deflate"} {
		c := e.config()
		needNoError(c.Set(kind, true), kind)
		consumer, box := e.consumer(kind, c, finish)
		p := e.producer(c)
		needNoError(p.MultiPublish(e.topic, bodies(20)), kind)
		needExactly(box.wait(20), 20)
		e.drained(kind)
		consumer.Stop()
		<-consumer.StopChan
		e.postTopic("delete")
	}
}

// authRefresh: grants live for a second, so a publish after that makes the server ask again; a wrong secret is refused. Without AUTH
// it only shows that a connection outlives the second.
func authRefresh(e *env) {
	_, box := e.consumer("c", e.config(), finish)
	p := e.producer(e.config())
	for i, b := range bodies(3) {
		if i > 0 {
			time.Sleep(1200 * time.Millisecond)
		}
		needNoError(p.Publish(e.topic, b), "publish")
	}
	needExactly(box.wait(3), 3)
	e.drained("c")
	if over.secret == "" {
		return
	}
	c := e.config()
	c.AuthSecret = "wrong"
	need(e.producer(c).Publish(e.topic, []byte("x")) != nil, "a wrong secret published")
}
