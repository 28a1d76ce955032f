package main

import (
	"fmt"
	"time"

	"github.com/nsqio/go-nsq"
)

// consumeByLookup asks a nsqlookupd for the Topic's producers every second and prints `count` bodies, one a line; the line before
// them says that it has asked.
func consumeByLookup(lookup, topic string, count int) int {
	c := nsq.NewConfig()
	c.LookupdPollInterval = time.Second
	c.MaxInFlight = 10
	consumer, err := nsq.NewConsumer(topic, "go", c)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	consumer.SetLogger(quiet, nsq.LogLevelError)
	bodies := make(chan string, count)
	consumer.AddHandler(nsq.HandlerFunc(func(m *nsq.Message) error {
		bodies <- string(m.Body)
		return nil
	}))
	if err := consumer.ConnectToNSQLookupd(lookup); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("asking")
	late := time.After(3 * patience)
	for i := 0; i < count; i++ {
		select {
		case body := <-bodies:
			fmt.Println(body)
		case <-late:
			fmt.Printf("%d of %d messages\n", i, count)
			return 1
		}
	}
	consumer.Stop()
	<-consumer.StopChan
	return 0
}
