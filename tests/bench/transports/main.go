// Load with go-nsq over a transport, for any server that speaks NSQ V2.
//
//	transports --tcp ADDR --topic T --transport plain|tls|snappy|deflate --work mpub|pub|sub --count N
//
// `mpub` and `pub` publish N messages of 1 KiB of text, in batches of 64 or one by one; `sub` consumes N and finishes them. Prints how many, when done.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nsqio/go-nsq"
)

const (
	producers = 16
	batch     = 64
	inFlight  = 256
	bodyBytes = 1024
)

var words = strings.Fields("order customer amount currency created updated region warehouse shipment pending delivered status payload version item price quantity")

// text is what JSON documents look like to a compressor: words of a small vocabulary and numbers.
func text(r *rand.Rand) []byte {
	var b strings.Builder
	for b.Len() < bodyBytes {
		fmt.Fprintf(&b, "%q:%d,", words[r.Intn(len(words))], r.Intn(1000000))
	}
	return []byte(b.String()[:bodyBytes])
}

func config(transport string) *nsq.Config {
	c := nsq.NewConfig()
	c.MaxInFlight = inFlight
	c.Snappy = transport == "snappy"
	c.Deflate = transport == "deflate"
	c.DeflateLevel = 6
	if transport == "tls" {
		c.TlsV1 = true
		c.TlsConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return c
}

func need(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func publish(address, topic, transport string, count, each int) {
	var all sync.WaitGroup
	for n := 0; n < producers; n++ {
		all.Add(1)
		go func(seed int64) {
			defer all.Done()
			p, err := nsq.NewProducer(address, config(transport))
			need(err)
			p.SetLogger(log.New(os.Stderr, "", 0), nsq.LogLevelError)
			defer p.Stop()
			r := rand.New(rand.NewSource(seed))
			bodies := make([][]byte, 1024)
			for i := range bodies {
				bodies[i] = text(r)
			}
			for sent := 0; sent < count/producers; sent += each {
				if each == 1 {
					need(p.Publish(topic, bodies[sent%len(bodies)]))
				} else {
					from := sent % len(bodies)
					need(p.MultiPublish(topic, bodies[from:from+each]))
				}
			}
		}(int64(n))
	}
	all.Wait()
}

func consume(address, topic, transport string, count int) {
	c, err := nsq.NewConsumer(topic, "c", config(transport))
	need(err)
	c.SetLogger(log.New(os.Stderr, "", 0), nsq.LogLevelError)
	var seen int64
	done := make(chan bool)
	c.AddConcurrentHandlers(nsq.HandlerFunc(func(*nsq.Message) error {
		if atomic.AddInt64(&seen, 1) == int64(count) {
			close(done)
		}
		return nil
	}), 4)
	need(c.ConnectToNSQD(address))
	select {
	case <-done:
	case <-time.After(100 * time.Second):
		need(fmt.Errorf("%d of %d messages after 100 s", atomic.LoadInt64(&seen), count))
	}
	c.Stop()
	<-c.StopChan
}

func main() {
	address := flag.String("tcp", "", "NSQ address")
	topic := flag.String("topic", "bench", "topic")
	transport := flag.String("transport", "plain", "plain, tls, snappy or deflate")
	work := flag.String("work", "mpub", "mpub, pub or sub")
	count := flag.Int("count", 64000, "messages")
	flag.Parse()
	switch *work {
	case "mpub":
		publish(*address, *topic, *transport, *count, batch)
	case "pub":
		publish(*address, *topic, *transport, *count, 1)
	case "sub":
		consume(*address, *topic, *transport, *count)
	}
	fmt.Println(*count)
}
