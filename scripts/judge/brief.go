package main

import "sort"

// shown is how many of the best nodes are named: in an empty cluster all are equal.
const shown = 10

// brief is a decision without what thousands of nodes got each: what there is to compare with, and what explains a
// difference.
type brief struct {
	Name       string            `json:"name"`
	Error      *failure          `json:"error,omitempty"`
	PreEnqueue *status           `json:"preEnqueue,omitempty"`
	Feasible   int               `json:"feasible"`
	Best       []string          `json:"best"` // at most shown of them
	Equals     int               `json:"equals"`
	Message    string            `json:"message,omitempty"`
	Messages   map[string]string `json:"messages,omitempty"`
	Preemption *preemptionResult `json:"preemption,omitempty"`
	Asked      *seen             `json:"asked,omitempty"`
	Instead    *seen             `json:"instead,omitempty"`
}

// seen is what one node got.
type seen struct {
	Node     string           `json:"node"`
	Best     bool             `json:"best,omitempty"`
	Rejected *status          `json:"rejected,omitempty"`
	Total    int64            `json:"total"`
	Scores   map[string]int64 `json:"scores,omitempty"`
}

// brief says of a decision what it came to, and what the node got that somebody else has chosen.
func (a *attempt) brief() brief {
	made := brief{
		Name: a.made.Name, Error: a.made.Error, PreEnqueue: a.made.PreEnqueue, Feasible: len(a.feasible), Best: a.made.Best[:min(shown, len(a.made.Best))], Equals: len(a.made.Best),
		Message: a.made.FitError, Preemption: a.made.Preemption,
	}
	if a.asked != "" {
		made.Asked = a.seen(a.asked)
	}
	if len(a.made.Best) > 0 {
		made.Instead = a.seen(a.made.Best[0])
	}
	if found := a.made.Preemption; found != nil {
		made.Message = a.withPreemption(found.Message)
		for node, message := range found.Messages {
			if made.Messages == nil {
				made.Messages = map[string]string{}
			}
			made.Messages[node] = a.withPreemption(message)
		}
	}
	return made
}

// withPreemption is the message that events show.
func (a *attempt) withPreemption(message string) string {
	whole := a.fitError()
	whole.Diagnosis.PostFilterMsg = message
	return whole.Error()
}

func (a *attempt) seen(node string) *seen {
	made := &seen{Node: node, Scores: map[string]int64{}, Total: a.made.Totals[node]}
	at := sort.SearchStrings(a.made.Best, node)
	made.Best = at < len(a.made.Best) && a.made.Best[at] == node
	if found, is := a.made.Filtered[node]; is {
		made.Rejected = &found
	} else if a.made.PreFilter != nil {
		made.Rejected = a.made.PreFilter
	} else if !a.kept && !a.passes[node] && a.made.Error == nil && a.made.PreEnqueue == nil && len(a.nodes) > 0 {
		if found := a.diagnosis.NodeToStatus.Get(node); found != nil {
			made.Rejected = told(found)
		}
	}
	for plugin, column := range a.made.Scores {
		if score, is := column[node]; is {
			made.Scores[plugin] = score
		}
	}
	return made
}
