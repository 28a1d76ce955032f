//go:build tools

// Package nsqd pins the version of nsqd that the benchmark compares with.
package nsqd

import _ "github.com/nsqio/nsq/apps/nsqd"
