module rustqueue.test/bench/nsqd

go 1.19

require github.com/nsqio/nsq v1.3.0

// What nsqd's own go.mod replaces; a replacement only counts in the main module.
replace github.com/judwhite/go-svc => github.com/mreiferson/go-svc v1.2.2-0.20210815184239-7a96e00010f6
