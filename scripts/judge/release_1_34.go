//go:build k8s_1_34

package main

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// forget has no more devices held for a claim, whoever shares it.
func forget(claims framework.ResourceClaimTracker, claim types.UID) {
	claims.RemoveClaimPendingAllocation(claim)
}

type nodeInfoLister = framework.NodeInfoLister

type extender = framework.Extender

// resized does nothing: no kubelet says what a pod has as a whole.
func resized(_, _ *core.PodStatus) {}
