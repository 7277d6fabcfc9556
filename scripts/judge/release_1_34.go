//go:build k8s_1_34

package main

import (
	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// gates are those that are set otherwise than by default: preemption has ended when its plugin returns, and the default
// profile is without DynamicResources.
var gates = map[string]bool{"SchedulerAsyncPreemption": false, "DynamicResourceAllocation": false}

func recorder() profile.RecorderFactory {
	return func(string) events.EventRecorder { return &events.FakeRecorder{} }
}

// pop takes the next pod out of the queue.
func pop(w *world) (*framework.QueuedPodInfo, error) {
	return w.scheduler.SchedulingQueue.Pop(logr.Discard())
}

// putBack has the queue hold a pod that was rejected.
func putBack(w *world, logger logr.Logger, pod *framework.QueuedPodInfo) error {
	return w.scheduler.SchedulingQueue.AddUnschedulableIfNotPresent(logger, pod, w.scheduler.SchedulingQueue.SchedulingCycle())
}
