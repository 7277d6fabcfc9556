package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for a clock that nobody may set

	"k8s.io/utils/clock"
)

// looks is the clock of what waits in a bind for somebody else, and looks every few seconds whether it may go on: for volumes
// that are made, for devices that get ready. It ticks once for those that have just begun, and once each second; who has
// waited for as long as it may gives up after that second's look.
type looks struct {
	clock.RealClock
	mu   sync.Mutex
	all  map[*look]bool
	due  []*look
	ends map[*deadline]int
}

type look struct {
	of    *looks
	ticks chan time.Time
}

var waits = &looks{}

// waitClock is where "wait" has its clock; scripts/build-judge makes it one that can be set.
//
//go:linkname waitClock k8s.io/apimachinery/pkg/util/wait.internalClock
var waitClock clock.WithTicker

// waitTimeout makes the context of what waits for a certain time at most; it is there in what scripts/build-judge builds.
//
//go:linkname waitTimeout k8s.io/apimachinery/pkg/util/wait.withTimeout
var waitTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

// claimTime is what DynamicResources takes for the time, likewise.
//
//go:linkname claimTime k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources.timeNow
var claimTime func() time.Time

func init() { waitClock, waitTimeout = waits, waits.withTimeout }

// deadline is a context that ends when somebody says that its time is over.
type deadline struct {
	context.Context
	cancel context.CancelFunc
	over   atomic.Bool
}

func (d *deadline) Err() error {
	if d.over.Load() {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}

// forCaches is for how long a plugin looks for a claim that it has made: in real time.
const forCaches = 5 * time.Second

func (l *looks) withTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == forCaches {
		return context.WithTimeout(parent, timeout)
	}
	inner, cancel := context.WithCancel(parent)
	made := &deadline{Context: inner, cancel: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[made] = int(timeout / time.Second)
	return made, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, made)
		cancel()
	}
}

// over ends what has waited for as long as it may; it says whether there was any.
func (l *looks) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	any := false
	for each, left := range l.ends {
		if left <= 0 {
			any = true
			delete(l.ends, each)
			each.over.Store(true)
			each.cancel()
		}
	}
	return any
}

// begin forgets who waited in another sequence.
func (l *looks) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.due, l.ends = map[*look]bool{}, nil, map[*deadline]int{}
}

func (l *looks) NewTicker(every time.Duration) clock.Ticker {
	if every < time.Second {
		return l.RealClock.NewTicker(every)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	made := &look{l, make(chan time.Time, 1)}
	l.all[made] = true
	l.due = append(l.due, made)
	return made
}

// second has everybody look again.
func (l *looks) second() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = nil
	for each := range l.all {
		l.due = append(l.due, each)
	}
	for each := range l.ends {
		l.ends[each]--
	}
}

// look lets those look whose turn it is; it says whether there were any.
func (l *looks) look() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, any := l.due, false
	l.due = nil
	for _, each := range due {
		if l.all[each] {
			any = true
			select {
			case each.ticks <- time.Now():
			default:
			}
		}
	}
	return any
}

func (l *look) C() <-chan time.Time { return l.ticks }

func (l *look) Stop() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	delete(l.of.all, l)
}
