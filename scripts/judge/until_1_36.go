//go:build k8s_1_34 || k8s_1_35 || k8s_1_36

package main

import (
	"github.com/go-logr/logr"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// pop takes the next pod out of the queue.
func pop(w *world) (*framework.QueuedPodInfo, error) {
	return w.scheduler.SchedulingQueue.Pop(logr.Discard())
}

// putBack has the queue hold a pod that was rejected.
func putBack(w *world, logger logr.Logger, pod *framework.QueuedPodInfo) error {
	return w.scheduler.SchedulingQueue.AddUnschedulableIfNotPresent(logger, pod, w.scheduler.SchedulingQueue.SchedulingCycle())
}
