//go:build k8s_1_37

package main

import (
	"fmt"

	"github.com/go-logr/logr"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// gates are those that are set otherwise than by default: preemption has ended when its plugin returns.
var gates = map[string]bool{"SchedulerAsyncPreemption": false}

func recorder() profile.RecorderFactory {
	return func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
}

func init() {
	kinds["deviceTaintRules"] = func() runtime.Object { return &resource.DeviceTaintRule{} }
}

// synced says of an informer, and of its handlers, that there is nothing to wait for.
type synced struct{}

func (synced) Name() string { return "judge" }

func (synced) Done() <-chan struct{} { return done }

var done = make(chan struct{})

func init() { close(done) }

func (*informer) HasSyncedChecker() cache.DoneChecker { return synced{} }

func (registration) HasSyncedChecker() cache.DoneChecker { return synced{} }

// pop takes the next pod out of the queue.
func pop(w *world) (*framework.QueuedPodInfo, error) {
	popped, err := w.scheduler.SchedulingQueue.Pop(logr.Discard())
	if err != nil {
		return nil, err
	}
	pod, is := popped.(*framework.QueuedPodInfo)
	if !is {
		return nil, fmt.Errorf("not a pod: %T", popped)
	}
	return pod, nil
}

// putBack has the queue hold a pod that was rejected.
func putBack(w *world, logger logr.Logger, pod *framework.QueuedPodInfo) error {
	return w.scheduler.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, pod, w.scheduler.SchedulingQueue.SchedulingCycle())
}
