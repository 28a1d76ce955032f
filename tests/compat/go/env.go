package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

// env is what one case works with. need and friends end the case through a panic that attempt turns into a reason.
type env struct {
	tcp, http, topic string
	byChance         bool // each message is sampled by itself
	closers          []func()
}

type failure struct{ why string }

func (e *env) attempt(run func(*env)) (why string) {
	defer func() {
		if r := recover(); r != nil {
			if f, mine := r.(failure); mine {
				why = f.why
			} else {
				why = fmt.Sprint("panic: ", r)
			}
		}
		for i := len(e.closers) - 1; i >= 0; i-- {
			e.closers[i]()
		}
	}()
	run(e)
	return ""
}

func fail(format string, args ...interface{}) { panic(failure{fmt.Sprintf(format, args...)}) }

func need(condition bool, format string, args ...interface{}) {
	if !condition {
		fail(format, args...)
	}
}

func needNoError(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// patience only ends what hangs: a machine may be busy, or stand still for seconds.
const patience = 60 * time.Second

// The settings of the compatibility matrix: short heartbeats, timeouts and buffers, but longer than a machine stands still.
func (e *env) config() *nsq.Config {
	c := nsq.NewConfig()
	c.HeartbeatInterval = 2 * time.Second
	c.MsgTimeout = 20 * time.Second
	c.OutputBufferSize = 4096
	c.OutputBufferTimeout = 100 * time.Millisecond
	c.MaxInFlight = 100
	c.MaxAttempts = 0
	c.DefaultRequeueDelay = 100 * time.Millisecond
	c.WriteTimeout = patience
	c.Snappy, c.Deflate, c.AuthSecret = over.snappy, over.deflate, over.secret
	if over.tls != nil {
		c.TlsV1, c.TlsConfig = true, over.tls
	}
	return c
}

// transport is what lies between the clients and the server in this run.
type transport struct {
	snappy, deflate bool
	secret          string
	tls             *tls.Config
}

var over transport

func (t *transport) load(ca, cert, key string) error {
	if ca == "" {
		return nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", ca)
	}
	t.tls = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if cert != "" {
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return err
		}
		t.tls.Certificates = []tls.Certificate{own}
	}
	return nil
}

var quiet = log.New(io.Discard, "", 0)

func (e *env) producer(c *nsq.Config) *nsq.Producer {
	p, err := nsq.NewProducer(e.tcp, c)
	needNoError(err, "producer")
	p.SetLogger(quiet, nsq.LogLevelError)
	e.closers = append(e.closers, p.Stop)
	return p
}

// inbox collects what a consumer's handler saw.
type inbox struct {
	lock     sync.Mutex
	messages []seen
	news     chan struct{}
}

type seen struct {
	id       string
	body     string
	attempts uint16
	stamp    int64
	at       time.Time
}

func (b *inbox) add(m *nsq.Message) seen {
	s := seen{string(m.ID[:]), string(m.Body), m.Attempts, m.Timestamp, time.Now()}
	b.lock.Lock()
	b.messages = append(b.messages, s)
	b.lock.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	return s
}

func (b *inbox) all() []seen {
	b.lock.Lock()
	defer b.lock.Unlock()
	return append([]seen(nil), b.messages...)
}

// wait returns once n messages were seen.
func (b *inbox) wait(n int) []seen {
	end := time.After(patience)
	for {
		if all := b.all(); len(all) >= n {
			return all
		}
		select {
		case <-b.news:
		case <-end:
			fail("%d messages after %v instead of %d", len(b.all()), patience, n)
		}
	}
}

type handler func(*inbox, *nsq.Message) error

func finish(b *inbox, m *nsq.Message) error {
	b.add(m)
	return nil
}

func (e *env) consumer(channel string, c *nsq.Config, h handler) (*nsq.Consumer, *inbox) {
	consumer, err := nsq.NewConsumer(e.topic, channel, c)
	needNoError(err, "consumer")
	consumer.SetLogger(quiet, nsq.LogLevelError)
	box := &inbox{news: make(chan struct{}, 1)}
	consumer.AddConcurrentHandlers(nsq.HandlerFunc(func(m *nsq.Message) error { return h(box, m) }), 4)
	before := 0
	if e.http != "" {
		s, _ := e.stats(channel)
		before = s.ClientCount
	}
	needNoError(consumer.ConnectToNSQD(e.tcp), "connect")
	e.closers = append(e.closers, func() {
		consumer.Stop()
		select {
		case <-consumer.StopChan:
		case <-time.After(10 * time.Second): // it may wait for a message that is never answered
		}
	})
	if e.http != "" { // go-nsq does not wait for the answer to SUB
		e.settled(channel, "subscribed", func(s channelStats, _ bool) bool { return s.ClientCount > before })
	}
	return consumer, box
}

// relay passes one connection on to the server until it is cut.
func (e *env) relay() (address string, cut func()) {
	server := e.tcp
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	needNoError(err, "relay")
	var lock sync.Mutex
	var ends []net.Conn
	cut = func() {
		listener.Close()
		lock.Lock()
		defer lock.Unlock()
		for _, c := range ends {
			c.Close()
		}
	}
	e.closers = append(e.closers, cut)
	go func() {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", server)
		if err != nil {
			near.Close()
			return
		}
		lock.Lock()
		ends = append(ends, near, far)
		lock.Unlock()
		go io.Copy(near, far)
		io.Copy(far, near)
	}()
	return listener.Addr().String(), cut
}

func (e *env) post(path string, query url.Values) {
	answer, err := http.Post("http://"+e.http+path+"?"+query.Encode(), "application/octet-stream", nil)
	needNoError(err, path)
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	need(answer.StatusCode == 200, "POST %s: %d %s", path, answer.StatusCode, text)
}

func (e *env) postTopic(action string) { e.post("/topic/"+action, url.Values{"topic": {e.topic}}) }

func (e *env) postChannel(action, channel string) {
	e.post("/channel/"+action, url.Values{"topic": {e.topic}, "channel": {channel}})
}

type channelStats struct {
	Name          string `json:"channel_name"`
	Depth         int    `json:"depth"`
	InFlight      int    `json:"in_flight_count"`
	Deferred      int    `json:"deferred_count"`
	Messages      int    `json:"message_count"`
	RequeueCount  int    `json:"requeue_count"`
	TimeoutCount  int    `json:"timeout_count"`
	ClientCount   int    `json:"client_count"`
	Paused        bool   `json:"paused"`
	ClientDetails []link `json:"clients"`
}

// link is one connection as /stats shows it.
type link struct {
	UserAgent string `json:"user_agent"`
	Version   string `json:"version"`
	State     int    `json:"state"`
	granted
	PubCounts []struct {
		Topic string `json:"topic"`
	} `json:"pub_counts"`
}

type granted struct {
	Snappy  bool `json:"snappy"`
	Deflate bool `json:"deflate"`
	TLS     bool `json:"tls"`
	Authed  bool `json:"authed"`
}

type topicsAndProducers struct {
	Topics []struct {
		Name     string         `json:"topic_name"`
		Channels []channelStats `json:"channels"`
	} `json:"topics"`
	Producers []link `json:"producers"`
}

func (e *env) document() (all topicsAndProducers) {
	answer, err := http.Get("http://" + e.http + "/stats?format=json&topic=" + url.QueryEscape(e.topic))
	needNoError(err, "/stats")
	defer answer.Body.Close()
	needNoError(json.NewDecoder(answer.Body).Decode(&all), "/stats")
	return all
}

// needGranted: the Channel's consumer and the Topic's producer have all that was asked for and nothing else. A client goes on in clear, and without
// AUTH, when the server does not grant it.
func (e *env) needGranted(channel string) {
	asked := granted{over.snappy, over.deflate, over.tls != nil, over.secret != ""}
	s, _ := e.stats(channel)
	need(len(s.ClientDetails) == 1 && s.ClientDetails[0].granted == asked, "consumer %+v instead of %+v", s.ClientDetails, asked)
	for _, p := range e.document().Producers {
		if len(p.PubCounts) == 1 && p.PubCounts[0].Topic == e.topic {
			need(p.granted == asked, "producer %+v instead of %+v", p, asked)
			return
		}
	}
	fail("no producer of the Topic in /stats")
}

func (e *env) stats(channel string) (channelStats, bool) {
	for _, t := range e.document().Topics {
		for _, c := range t.Channels {
			if t.Name == e.topic && c.Name == channel {
				return c, true
			}
		}
	}
	return channelStats{}, false
}

// settled polls /stats until the condition holds.
func (e *env) settled(channel string, what string, holds func(channelStats, bool) bool) {
	end := time.Now().Add(patience)
	for {
		s, there := e.stats(channel)
		if holds(s, there) {
			return
		}
		need(time.Now().Before(end), "%s: not within %v, stats %+v", what, patience, s)
		time.Sleep(20 * time.Millisecond)
	}
}

func (e *env) drained(channel string) {
	e.settled(channel, "channel drained", func(s channelStats, there bool) bool {
		return there && s.Depth == 0 && s.InFlight == 0 && s.Deferred == 0
	})
}
