package main

import (
	"sync"
	"time"
	_ "unsafe" // for a clock that nobody may set

	"k8s.io/utils/clock"
)

// looks is the clock of what waits in a bind for somebody else, and looks every few seconds whether it may go on: for volumes
// that are made, for devices that get ready. It ticks once for those that have just begun, and once each second.
type looks struct {
	clock.RealClock
	mu  sync.Mutex
	all map[*look]bool
	due []*look
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

func init() { waitClock = waits }

// begin forgets who waited in another sequence.
func (l *looks) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.due = map[*look]bool{}, nil
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
