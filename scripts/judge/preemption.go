package main

import (
	"sort"

	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// throws is how often two candidates are compared before the second counts as worse: among equals upstream takes the
// one that a map gives first, which of two is the second one at least every eighth time.
const throws = 200

// preemptionResult is what the PostFilter plugins came to.
type preemptionResult struct {
	Nominated map[string][]string `json:"nominated,omitempty"`
	Messages  map[string]string   `json:"messages,omitempty"`
	Message   string              `json:"message,omitempty"`
	Error     string              `json:"error,omitempty"`
	Sampled   bool                `json:"sampled,omitempty"`
}

// preempt finds every node that may be nominated, and who would be deleted there.
func (a *attempt) preempt() *preemptionResult {
	if !a.profile.HasPostFilterPlugins() {
		return &preemptionResult{Nominated: map[string][]string{"": {}}}
	}
	lister := a.world.objects.Core().V1().Pods().Informer().GetIndexer()
	if _, known, _ := lister.Get(a.pod); !known {
		_ = lister.Add(a.pod)
		defer func() { _ = lister.Delete(a.pod) }()
	}
	node, message, failed, _ := a.postFilter(a.diagnosis.NodeToStatus)
	made := &preemptionResult{Nominated: map[string][]string{}}
	if failed {
		made.Error, made.Message = message, message
		return made
	}
	if node == "" {
		made.Nominated[""], made.Message = []string{}, message
		return made
	}
	possible, sampled := a.possible(node)
	made.Sampled = sampled
	for _, each := range possible {
		_, said, _, deleted := a.postFilter(a.only(each))
		made.Nominated[each] = deleted
		if said != "" {
			if made.Messages == nil {
				made.Messages = map[string]string{}
			}
			made.Messages[each] = said
		}
	}
	return made
}

// postFilter runs the plugins; the pods that they deleted are sorted.
func (a *attempt) postFilter(statuses *framework.NodeToStatus) (node, message string, failed bool, deleted []string) {
	a.world.deleted = nil
	result, found := a.profile.RunPostFilterPlugins(a.world.ctx, a.state, a.pod, statuses)
	if result != nil && result.NominatingInfo != nil {
		node = result.NominatedNodeName
	}
	deleted = append([]string{}, a.world.deleted...)
	sort.Strings(deleted)
	return node, found.Message(), found.Code() == fwk.Error, deleted
}

// only has one node left where evictions may help.
func (a *attempt) only(node string) *framework.NodeToStatus {
	made := framework.NewNodeToStatus(map[string]*fwk.Status{}, a.diagnosis.NodeToStatus.AbsentNodesStatus())
	hopeless := fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	for _, each := range a.nodes {
		name := each.Node().Name
		if name == node {
			made.Set(name, a.diagnosis.NodeToStatus.Get(name))
		} else {
			made.Set(name, hopeless)
		}
	}
	return made
}

// possible are the candidates that are as good as the chosen one; all there are, where upstream only looks at some.
func (a *attempt) possible(chosen string) ([]string, bool) {
	plugin := a.defaultPreemption()
	if plugin == nil {
		return []string{chosen}, false
	}
	evaluator := plugin.Evaluator
	nodes, err := a.diagnosis.NodeToStatus.NodesForStatusCode(a.profile.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return []string{chosen}, false
	}
	budgets, err := evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return []string{chosen}, false
	}
	all, _, _ := evaluator.DryRunPreemption(a.world.ctx, a.state, a.pod, nodes, budgets, 0, int32(len(nodes)))
	if _, enough := plugin.GetOffsetAndNumCandidates(int32(len(nodes))); int(enough) < len(all) {
		return names(all), true
	}
	return names(a.equals(evaluator, all)), false
}

func (a *attempt) equals(evaluator *preemption.Evaluator, all []preemption.Candidate) []preemption.Candidate {
	best := evaluator.SelectCandidate(a.world.ctx, all)
	made := []preemption.Candidate{best}
	for _, each := range all {
		if each.Name() == best.Name() {
			continue
		}
		for range throws {
			if evaluator.SelectCandidate(a.world.ctx, []preemption.Candidate{best, each}).Name() == each.Name() {
				made = append(made, each)
				break
			}
		}
	}
	return made
}

func names(candidates []preemption.Candidate) []string {
	made := []string{}
	for _, each := range candidates {
		made = append(made, each.Name())
	}
	return made
}

// defaultPreemption is the plugin of the profile, nil where it has none.
func (a *attempt) defaultPreemption() *defaultpreemption.DefaultPreemption {
	for _, each := range a.profile.EnqueueExtensions() {
		if found, is := each.(*defaultpreemption.DefaultPreemption); is {
			return found
		}
	}
	return nil
}
