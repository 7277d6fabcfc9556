//go:build k8s_1_34 || k8s_1_35

package main

import (
	resource "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// recorder has everybody tell events to whom it is given.
func recorder(to events.EventRecorderLogger) profile.RecorderFactory {
	return func(string) events.EventRecorder { return to }
}

func init() {
	kinds["deviceTaintRules"] = func() runtime.Object { return &resource.DeviceTaintRule{} }
}
