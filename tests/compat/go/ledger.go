package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

// publishUntilCut publishes from four producers, each body different, and writes down each body whose publish was answered OK.
// It ends when the server goes away. Prints `ready` once a hundred were acknowledged.
func publishUntilCut(tcp, topic, ledger string) int {
	file, err := os.Create(ledger)
	if err != nil {
		fmt.Println("FAIL", err)
		return 1
	}
	defer file.Close()
	e := &env{tcp: tcp, topic: topic}
	var lock sync.Mutex
	var wait sync.WaitGroup
	count := 0
	for w := 0; w < 4; w++ {
		p := e.producer(e.config())
		wait.Add(1)
		go func(w int) {
			defer wait.Done()
			for i := 0; i < 200000; i++ {
				body := fmt.Sprintf("%d.%d", w, i)
				if p.Publish(topic, []byte(body)) != nil {
					return
				}
				lock.Lock()
				fmt.Fprintln(file, body)
				count++
				if count == 100 {
					fmt.Println("ready")
				}
				lock.Unlock()
			}
		}(w)
	}
	wait.Wait()
	fmt.Printf("acknowledged %d\n", count)
	return 0
}

func drainLedger(tcp, topic, ledger string) int {
	file, err := os.Open(ledger)
	if err != nil {
		fmt.Println("FAIL", err)
		return 1
	}
	defer file.Close()
	missing := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		missing[lines.Text()] = true
	}
	total := len(missing)
	e := &env{tcp: tcp, topic: topic}
	var lock sync.Mutex
	done := make(chan struct{})
	why := e.attempt(func(e *env) {
		e.consumer("drain", e.config(), func(b *inbox, m *nsq.Message) error {
			lock.Lock()
			defer lock.Unlock()
			if missing[string(m.Body)] {
				delete(missing, string(m.Body))
				if len(missing) == 0 {
					close(done)
				}
			}
			return nil
		})
		select {
		case <-done:
		case <-time.After(3 * patience):
			lock.Lock()
			defer lock.Unlock()
			fail("%d of %d acknowledged messages never came", len(missing), total)
		}
	})
	if why != "" {
		fmt.Println("FAIL", why)
		return 1
	}
	fmt.Printf("all %d acknowledged messages came\n", total)
	return 0
}
