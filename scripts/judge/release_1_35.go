//go:build k8s_1_35

package main

import (
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// forget has no more devices held for a claim, whoever shares it.
func forget(claims fwk.ResourceClaimTracker, claim types.UID) {
	claims.RemoveClaimPendingAllocation(claim)
}

type nodeInfoLister = fwk.NodeInfoLister

type extender = fwk.Extender
