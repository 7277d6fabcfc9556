package main

import (
	"errors"
	"sort"

	"fmt"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// profiled is a profile of kube-scheduler.
type profiled = framework.Framework

// status says who refused something and why.
type status struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

// failure is an attempt that ended in an error.
type failure struct {
	Stage    string            `json:"stage"`
	Plugin   string            `json:"plugin"`
	Messages map[string]string `json:"messages"`
}

// decision is what an attempt came to, in the form of the conformance vectors.
type decision struct {
	Name                 string                      `json:"name"`
	Error                *failure                    `json:"error,omitempty"`
	PreEnqueue           *status                     `json:"preEnqueue,omitempty"`
	PreFilter            *status                     `json:"preFilter,omitempty"`
	PreFilterNodes       []string                    `json:"preFilterNodes,omitempty"`
	Filtered             map[string]status           `json:"filtered"`
	Feasible             []string                    `json:"feasible"`
	Scores               map[string]map[string]int64 `json:"scores"`
	Totals               map[string]int64            `json:"totals"`
	Best                 []string                    `json:"best"`
	FitError             string                      `json:"fitError,omitempty"`
	UnschedulablePlugins []string                    `json:"unschedulablePlugins,omitempty"`
	Preemption           *preemptionResult           `json:"preemption,omitempty"`
}

// attempt is one pod's way through a profile.
type attempt struct {
	world     *world
	profile   profiled
	state     fwk.CycleState
	pod       *core.Pod
	nodes     []fwk.NodeInfo
	diagnosis framework.Diagnosis
	feasible  []fwk.NodeInfo
	passes    map[string]bool
	kept      bool   // the pod took the node that it had been promised
	whole     bool   // what each node got is told
	asked     string // what this node got is told in any case
	made      decision
}

// begin prepares an attempt at a pod.
func (w *world) begin(name string, pod *core.Pod) (*attempt, error) {
	of, why := w.profileOf(pod)
	if of == nil {
		return nil, errors.New(why)
	}
	tried := &attempt{world: w, profile: of, state: framework.NewCycleState(), pod: pod, passes: map[string]bool{}}
	tried.made = decision{Name: name, Filtered: map[string]status{}, Feasible: []string{}, Scores: map[string]map[string]int64{},
		Totals: map[string]int64{}, Best: []string{}}
	nodes, err := w.snapshot(of)
	if err != nil {
		return nil, err
	}
	tried.nodes = nodes
	return tried, nil
}

// run looks at every node and scores every feasible one; promised, if it is not empty, is tried before the others, and
// alone if it will do.
func (a *attempt) run(preempt bool, promised string) {
	for _, plugin := range a.profile.PreEnqueuePlugins() {
		if found := plugin.PreEnqueue(a.world.ctx, a.pod); !found.IsSuccess() {
			a.made.PreEnqueue = told(found.WithPlugin(plugin.Name()))
			return
		}
	}
	if len(a.nodes) == 0 {
		a.made.FitError = scheduler.ErrNoNodesAvailable.Error()
		return
	}
	a.diagnosis.NodeToStatus = framework.NewDefaultNodeToStatus()
	if !a.filter(promised) {
		return
	}
	if len(a.feasible) > 0 {
		a.score()
		return
	}
	a.explain()
	if preempt {
		a.made.Preemption = a.preempt()
	}
}

// filter says which nodes are feasible; false when that is the end. Source: findNodesThatFitPod.
func (a *attempt) filter(promised string) bool {
	narrowed, found, plugins := a.profile.RunPreFilterPlugins(a.world.ctx, a.state, a.pod)
	a.diagnosis.UnschedulablePlugins = plugins
	if !found.IsSuccess() {
		if !found.IsRejected() {
			a.fail("preFilter", found, map[string]string{"": found.Message()})
			return false
		}
		a.diagnosis.NodeToStatus.SetAbsentNodesStatus(found)
		a.diagnosis.PreFilterMsg = found.Message()
		a.diagnosis.AddPluginStatus(found)
		a.made.PreFilter = told(found)
		return true
	}
	if promised != "" {
		for _, node := range a.nodes {
			if node.Node().Name == promised {
				if !a.look([]fwk.NodeInfo{node}) {
					return false
				}
				if a.kept = len(a.feasible) > 0; a.kept {
					return true
				}
			}
		}
	}
	nodes := a.nodes
	if !narrowed.AllNodes() {
		nodes = nil
		for _, node := range a.nodes {
			if narrowed.NodeNames.Has(node.Node().Name) {
				nodes = append(nodes, node)
			}
		}
		a.made.PreFilterNodes = sets.List(narrowed.NodeNames)
		message := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins))
		a.diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message))
	}
	return a.look(nodes)
}

// look runs the filters on nodes; false when one ended in an error. Source: findNodesThatPassFilters.
func (a *attempt) look(nodes []fwk.NodeInfo) bool {
	found := make([]*fwk.Status, len(nodes))
	a.each(len(nodes), func(i int) {
		found[i] = a.profile.RunFilterPluginsWithNominatedPods(a.world.ctx, a.state, a.pod, nodes[i])
	})
	failures := map[string]string{}
	var failed *fwk.Status
	for i, node := range nodes {
		name := node.Node().Name
		switch {
		case found[i].IsSuccess():
			a.feasible = append(a.feasible, node)
			a.passes[name] = true
		case found[i].Code() == fwk.Error:
			failures[name], failed = found[i].Message(), found[i]
		default:
			a.diagnosis.NodeToStatus.Set(name, found[i])
			a.diagnosis.AddPluginStatus(found[i])
			if a.tells(name) {
				a.made.Filtered[name] = *told(found[i])
			}
		}
	}
	if failed != nil {
		a.fail("filter", failed, failures)
		return false
	}
	if a.whole {
		for _, node := range a.feasible {
			a.made.Feasible = append(a.made.Feasible, node.Node().Name)
		}
		sort.Strings(a.made.Feasible)
	}
	return true
}

// tells says whether it is told what a node got.
func (a *attempt) tells(node string) bool { return a.whole || node == a.asked }

// each calls for 0 to count-1, on several processors.
func (a *attempt) each(count int, call func(int)) {
	a.profile.Parallelizer().Until(a.world.ctx, count, call, "judge")
}

// score gives every feasible node its total. Of a single one kube-scheduler does not ask for it, so nobody can fail at
// that. Source: prioritizeNodes.
func (a *attempt) score() {
	if found := a.profile.RunPreScorePlugins(a.world.ctx, a.state, a.pod, a.feasible); !found.IsSuccess() {
		a.unscored("preScore", found)
		return
	}
	scores, found := a.profile.RunScorePlugins(a.world.ctx, a.state, a.pod, a.feasible)
	if !found.IsSuccess() {
		a.unscored("score", found)
		return
	}
	highest := scores[0].TotalScore
	for _, node := range scores {
		highest = max(highest, node.TotalScore)
	}
	for _, node := range scores {
		if node.TotalScore == highest {
			a.made.Best = append(a.made.Best, node.Name)
		}
	}
	sort.Strings(a.made.Best)
	for _, node := range scores {
		if !a.tells(node.Name) && node.Name != a.made.Best[0] {
			continue
		}
		for _, each := range node.Scores {
			if a.made.Scores[each.Name] == nil {
				a.made.Scores[each.Name] = map[string]int64{}
			}
			a.made.Scores[each.Name][node.Name] = each.Score
		}
		a.made.Totals[node.Name] = node.TotalScore
	}
}

func (a *attempt) unscored(stage string, found *fwk.Status) {
	if len(a.feasible) == 1 {
		a.made.Best = []string{a.feasible[0].Node().Name}
		return
	}
	a.fail(stage, found, map[string]string{"": found.Message()})
}

// explain says why no node is feasible.
func (a *attempt) explain() {
	a.made.FitError = a.fitError().Error()
	a.made.UnschedulablePlugins = sets.List(a.diagnosis.UnschedulablePlugins)
}

func (a *attempt) fitError() *framework.FitError {
	return &framework.FitError{Pod: a.pod, NumAllNodes: len(a.nodes), Diagnosis: a.diagnosis}
}

func (a *attempt) fail(stage string, found *fwk.Status, messages map[string]string) {
	a.made.Error = &failure{Stage: stage, Plugin: found.Plugin(), Messages: messages}
}

func told(found *fwk.Status) *status {
	reasons := found.Reasons()
	if reasons == nil {
		reasons = []string{}
	}
	return &status{Code: found.Code().String(), Plugin: found.Plugin(), Reasons: reasons}
}
