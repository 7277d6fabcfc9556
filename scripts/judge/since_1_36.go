//go:build k8s_1_36 || k8s_1_37

package main

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type nodeInfoLister = fwk.NodeInfoLister

type extender = fwk.Extender

// recorder has everybody tell events to whom it is given.
func recorder(to events.EventRecorderLogger) profile.RecorderFactory {
	return func(string) events.EventRecorderLogger { return to }
}

// synced says of an informer, and of its handlers, that there is nothing to wait for.
type synced struct{}

func (synced) Name() string { return "judge" }

func (synced) Done() <-chan struct{} { return done }

var done = make(chan struct{})

func init() { close(done) }

func (*informer) HasSyncedChecker() cache.DoneChecker { return synced{} }

func (registration) HasSyncedChecker() cache.DoneChecker { return synced{} }

// forget has no more devices held for a claim, whoever shares it.
func forget(claims fwk.ResourceClaimTracker, claim types.UID) {
	claims.MaybeRemoveClaimPendingAllocation(claim, true)
}
