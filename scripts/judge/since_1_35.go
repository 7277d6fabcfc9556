//go:build k8s_1_35 || k8s_1_36 || k8s_1_37

package main

import core "k8s.io/api/core/v1"

// resized has the kubelet say what a pod has as a whole.
func resized(status, kubelet *core.PodStatus) {
	status.Resources, status.AllocatedResources = kubelet.Resources, kubelet.AllocatedResources
}
