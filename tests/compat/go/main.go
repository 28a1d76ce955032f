// Compatibility cases with go-nsq against a running NSQ V2 server on this machine.
//
//	compat cases   --tcp ADDR --http ADDR [--only NAME,...] [--nsqd]
//	compat publish --tcp ADDR --topic T --ledger FILE          publishes until the connection dies, one line per acknowledged body
//	compat drain   --tcp ADDR --topic T --ledger FILE          consumes until every line of the ledger has arrived
//	compat lookup  --lookup ADDR --topic T --count N           finds the server by a nsqlookupd, consumes and prints N bodies
//
// `cases` prints one line per case, `ok NAME (seconds)` or `FAIL NAME: why`.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

type testCase struct {
	name string
	run  func(*env)
}

var cases = []testCase{
	{"publish-consume-finish", publishConsumeFinish},
	{"publish-async", publishAsync},
	{"multi-publish", multiPublish},
	{"deferred-publish", deferredPublish},
	{"backlog-before-first-channel", backlogBeforeFirstChannel},
	{"large-message", largeMessage},
	{"requeue-with-delay", requeueWithDelay},
	{"requeue-at-once", requeueAtOnce},
	{"backoff", backoff},
	{"touch", touch},
	{"message-timeout", messageTimeout},
	{"max-in-flight", maxInFlight},
	{"fan-out", fanOut},
	{"two-consumers-share", twoConsumersShare},
	{"heartbeats", heartbeats},
	{"graceful-stop", gracefulStop},
	{"consumer-disconnect-requeues", disconnectRequeues},
	{"refused-publishes", refusedPublishes},
	{"compression-asked-for", compressionAskedFor},
	{"sampling", sampling},
	{"ephemeral-channel", ephemeralChannel},
	{"channel-pause", channelPause},
	{"topic-pause", topicPause},
	{"channel-empty", channelEmpty},
	{"auth-refresh", authRefresh},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: compat cases|publish|drain|lookup --tcp ADDR ...")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	tcp := flags.String("tcp", "", "NSQ address")
	http := flags.String("http", "", "HTTP address")
	only := flags.String("only", "", "names of cases")
	topic := flags.String("topic", "ledger", "Topic of publish and drain")
	nsqd := flags.Bool("nsqd", false, "the server is nsqd, which samples by chance")
	flags.BoolVar(&over.snappy, "snappy", false, "compress with Snappy")
	flags.BoolVar(&over.deflate, "deflate", false, "compress with Deflate")
	flags.StringVar(&over.secret, "auth-secret", "", "secret for AUTH")
	ca := flags.String("tls-ca", "", "CA of the server's certificate; TLS is used with it")
	cert := flags.String("tls-cert", "", "own certificate")
	key := flags.String("tls-key", "", "its key")
	ledger := flags.String("ledger", "", "file of publish and drain")
	lookup := flags.String("lookup", "", "HTTP address of a nsqlookupd")
	count := flags.Int("count", 0, "messages of lookup")
	flags.Parse(os.Args[2:])
	if err := over.load(*ca, *cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	switch os.Args[1] {
	case "cases":
		os.Exit(runCases(*tcp, *http, *only, *nsqd))
	case "publish":
		os.Exit(publishUntilCut(*tcp, *topic, *ledger))
	case "drain":
		os.Exit(drainLedger(*tcp, *topic, *ledger))
	case "lookup":
		os.Exit(consumeByLookup(*lookup, *topic, *count))
	}
	os.Exit(2)
}

// Cases run side by side, each on a Topic of its own: most of their time is waiting.
func runCases(tcp, http, only string, nsqd bool) int {
	var wait sync.WaitGroup
	var lock sync.Mutex
	failed := 0
	slots := make(chan struct{}, 8)
	for _, c := range cases {
		if only != "" && !strings.Contains(","+only+",", ","+c.name+",") {
			continue
		}
		wait.Add(1)
		go func(c testCase) {
			defer wait.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			started := time.Now()
			e := &env{tcp: tcp, http: http, byChance: nsqd, topic: fmt.Sprintf("go-%s.%d", c.name, os.Getpid())}
			why := e.attempt(c.run)
			lock.Lock()
			defer lock.Unlock()
			if why == "" {
				fmt.Printf("ok %s (%.1f s)\n", c.name, time.Since(started).Seconds())
			} else {
				failed++
				fmt.Printf("FAIL %s: %s\n", c.name, strings.ReplaceAll(why, "\n", " | "))
			}
		}(c)
	}
	wait.Wait()
	if failed > 0 {
		return 1
	}
	return 0
}
