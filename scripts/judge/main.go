// Command judge decides with kube-scheduler's own framework. It reads JSON lines and writes JSON lines; see README.md.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

// line is one of the input: exactly one field is there.
type line struct {
	Case    json.RawMessage `json:"case"`
	Begin   *begin          `json:"begin"`
	Set     *change         `json:"set"`
	Gone    *change         `json:"gone"`
	Promise *promise        `json:"promise"`
	Decide  *question       `json:"decide"`
	Place   *place          `json:"place"`
	Hint    *happening      `json:"hint"`

	Sequence json.RawMessage `json:"sequence"`

	Configuration *string    `json:"configuration"`
	Selects       *selection `json:"selects"`
}

type begin struct {
	Config json.RawMessage `json:"config"`
}

type change struct {
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
	Key    string          `json:"key"`
}

type promise struct {
	Pod  json.RawMessage `json:"pod"`
	Node string          `json:"node"`
}

type place struct {
	Node string `json:"node"`
}

// question is a pod to decide about in the cluster as it was told; Node is where somebody else has put it.
type question struct {
	Name string          `json:"name"`
	Pod  json.RawMessage `json:"pod"`
	Node string          `json:"node"`
}

// unanswered stands for a decision that there is none of, and why.
type unanswered struct {
	Name  string `json:"name"`
	Cause string `json:"unjudged"`
}

// gates are those that are set otherwise than by default: preemption has ended when its plugin returns.
var gates = map[string]bool{"SchedulerAsyncPreemption": false}

func main() {
	more := flag.String("feature-gates", "", "NAME=BOOL,… to set otherwise than they are by default")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	if err := run(*more); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(more string) error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(more); err != nil {
		return err
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	answering := &answering{out: json.NewEncoder(out)}
	for number := 1; ; number++ {
		raw, err := in.ReadBytes('\n')
		if len(raw) > 1 {
			if err := answering.take(raw); err != nil {
				out.Flush()
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// answering holds the cluster that is told of line by line.
type answering struct {
	out      *json.Encoder
	standing *world
}

func (a *answering) take(raw []byte) error {
	var given line
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	switch {
	case given.Case != nil:
		return a.answerCase(given.Case)
	case given.Sequence != nil:
		found, err := runSequence(given.Sequence)
		if err != nil {
			return err
		}
		return a.out.Encode(found)
	case given.Configuration != nil:
		found, err := understand(*given.Configuration)
		if err != nil {
			return err
		}
		return a.out.Encode(found)
	case given.Selects != nil:
		found, err := selects(given.Selects)
		if err != nil {
			return err
		}
		return a.out.Encode(found)
	case given.Begin != nil:
		return a.begin(given.Begin)
	case a.standing == nil:
		return errors.New(`a cluster has to begin with {"begin": …}`)
	case given.Set != nil:
		return a.standing.set(given.Set.Kind, given.Set.Object)
	case given.Gone != nil:
		return a.standing.gone(given.Gone.Kind, given.Gone.Key)
	case given.Promise != nil:
		return a.standing.promise(given.Promise.Pod, given.Promise.Node)
	case given.Place != nil:
		return a.standing.place(given.Place.Node)
	case given.Hint != nil:
		found, err := a.standing.hint(given.Hint)
		if err != nil {
			return err
		}
		return a.out.Encode(found)
	case given.Decide != nil:
		return a.answer(given.Decide)
	}
	return errors.New("nothing that is known here")
}

func (a *answering) begin(given *begin) error {
	if a.standing != nil {
		a.standing.close()
	}
	made, err := newWorld(given.Config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	a.standing = made
	return nil
}

// answerCase builds the cluster of a conformance vector and decides on its pod.
func (a *answering) answerCase(raw json.RawMessage) error {
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(raw, &lists); err != nil {
		return err
	}
	var asked struct {
		Name    string          `json:"name"`
		Config  json.RawMessage `json:"config"`
		Pod     json.RawMessage `json:"pod"`
		Preempt bool            `json:"preempt"`
	}
	if err := json.Unmarshal(raw, &asked); err != nil {
		return err
	}
	made, err := newWorld(asked.Config)
	if err != nil {
		return fmt.Errorf("%s: configuration: %w", asked.Name, err)
	}
	defer made.close()
	for _, kind := range order {
		var objects []json.RawMessage
		if lists[kind] == nil || kinds[kind] == nil {
			continue
		}
		if err := json.Unmarshal(lists[kind], &objects); err != nil {
			return fmt.Errorf("%s: %s: %w", asked.Name, kind, err)
		}
		for _, object := range objects {
			if err := made.set(kind, object); err != nil {
				return fmt.Errorf("%s: %w", asked.Name, err)
			}
		}
	}
	object, err := read("pods", asked.Pod)
	if err != nil {
		return fmt.Errorf("%s: %w", asked.Name, err)
	}
	tried, err := made.begin(asked.Name, object.(*core.Pod))
	if err != nil {
		return a.out.Encode(unanswered{asked.Name, err.Error()})
	}
	tried.whole = true
	tried.run(asked.Preempt, "")
	return a.out.Encode(tried.made)
}

// answer decides on a pod in the cluster that was told of.
func (a *answering) answer(asked *question) error {
	object, err := read("pods", asked.Pod)
	if err != nil {
		return fmt.Errorf("%s: %w", asked.Name, err)
	}
	pod := object.(*core.Pod)
	promised := a.standing.promises[pod.UID]
	pod.Status.NominatedNodeName = promised
	a.standing.asked, a.standing.last = pod, nil
	tried, err := a.standing.begin(asked.Name, pod)
	if err != nil {
		return a.out.Encode(unanswered{asked.Name, err.Error()})
	}
	tried.asked = asked.Node
	tried.run(true, promised)
	a.standing.last = tried
	return a.out.Encode(tried.brief())
}
