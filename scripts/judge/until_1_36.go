//go:build k8s_1_34 || k8s_1_35 || k8s_1_36

package main

import (
	"encoding/json"
	_ "unsafe" // for a method that the queue calls by itself alone

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	backend "k8s.io/kubernetes/pkg/scheduler/backend/queue"
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

// waiting is a pod as the queue holds it.
func waiting(queue backend.SchedulingQueue, pod *core.Pod) (*framework.QueuedPodInfo, bool) {
	return queue.GetPod(pod.Name, pod.Namespace)
}

// tryOld has those tried again who have waited too long, as the queue does every half minute of a clock that nobody sets.
//
//go:linkname tryOld k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulablePodsLeftover
func tryOld(*backend.PriorityQueue, klog.Logger)

// Sequences are without pod groups, whose API was another one.

func keepGroup(_, _ runtime.Object) {}

func (r *running) named(map[string]json.RawMessage) error { return nil }

func (r *running) over(string, resource.ResourceClaimConsumerReference) bool { return true }

func groupReady(backend.SchedulingQueue, *core.Pod) (grouped, ready bool) { return false, false }

func groupSays(runtime.Object) (string, []seenSay) { return "", nil }

func ofGroups(backend.SchedulingQueue) map[string][]*core.Pod { return nil }
