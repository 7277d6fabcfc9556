//go:build k8s_1_34

package main

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// forget has no more devices held for a claim, whoever shares it.
func forget(claims framework.ResourceClaimTracker, claim types.UID) {
	claims.RemoveClaimPendingAllocation(claim)
}
