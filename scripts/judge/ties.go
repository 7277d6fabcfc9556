package main

import (
	core "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// ties is an extender that finds all nodes equally good. Of nodes that are so, kube-scheduler takes one by chance where there
// is an extender; else the one that is before the others in what it has found, which is up to chance only where it looks
// at several at the same time.
type ties struct{}

func (ties) Name() string { return "ties" }

func (ties) Filter(_ *core.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	return nodes, nil, nil, nil
}

func (ties) Prioritize(_ *core.Pod, nodes []fwk.NodeInfo) (*extenderv1.HostPriorityList, int64, error) {
	found := extenderv1.HostPriorityList{}
	for _, each := range nodes {
		found = append(found, extenderv1.HostPriority{Host: each.Node().Name})
	}
	return &found, 1, nil
}

func (ties) Bind(*core.Binding) error { return nil }

func (ties) IsBinder() bool { return false }

func (ties) IsInterested(*core.Pod) bool { return true }

func (ties) IsPrioritizer() bool { return true }

func (ties) IsFilter() bool { return false }

func (ties) ProcessPreemption(*core.Pod, map[string]*extenderv1.Victims, nodeInfoLister) (map[string]*extenderv1.Victims, error) {
	return nil, nil
}

func (ties) SupportsPreemption() bool { return false }

func (ties) IsIgnorable() bool { return true }
