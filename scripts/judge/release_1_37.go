//go:build k8s_1_37

package main

import (
	"fmt"
	_ "unsafe" // for a method that the queue calls by itself alone

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	backend "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func init() {
	kinds["deviceTaintRules"] = func() runtime.Object { return &resource.DeviceTaintRule{} }
}

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

// waiting is a pod as the queue holds it.
func waiting(queue backend.SchedulingQueue, pod *core.Pod) (*framework.QueuedPodInfo, bool) {
	return queue.GetPod(pod.Name, pod.Namespace, nil)
}

// tryOld has those tried again who have waited too long, as the queue does every half minute of a clock that nobody sets.
//
//go:linkname tryOld k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func tryOld(*backend.PriorityQueue, klog.Logger)
