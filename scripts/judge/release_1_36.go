//go:build k8s_1_36

package main

import (
	resource "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	kinds["deviceTaintRules"] = func() runtime.Object { return &resource.DeviceTaintRule{} }
}
