//go:build k8s_1_34

package main

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// gates are those that are set otherwise than by default: preemption has ended when its plugin returns, and the default
// profile is without DynamicResources.
var gates = map[string]bool{"SchedulerAsyncPreemption": false, "DynamicResourceAllocation": false}

func recorder() profile.RecorderFactory {
	return func(string) events.EventRecorder { return &events.FakeRecorder{} }
}
