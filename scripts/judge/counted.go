package main

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/component-base/metrics/legacyregistry"
)

// counted are the scheduler's metrics by name and labels: counters and gauges, of histograms how often they were told
// something, and where that is no time its sum.
func counted() (map[string]float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "scheduler_") && !strings.HasPrefix(name, "dynamic_resource_allocation_") {
			continue
		}
		for _, each := range family.GetMetric() {
			labels := []string{}
			for _, label := range each.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			sort.Strings(labels)
			of := fmt.Sprintf("{%s}", strings.Join(labels, ","))
			switch {
			case each.GetCounter() != nil:
				found[name+of] = each.GetCounter().GetValue()
			case each.GetGauge() != nil:
				found[name+of] = each.GetGauge().GetValue()
			case each.GetHistogram() != nil:
				found[name+"_count"+of] = float64(each.GetHistogram().GetSampleCount())
				if !strings.HasSuffix(name, "_seconds") {
					found[name+"_sum"+of] = each.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return found, nil
}

// since is by how much what is counted has changed, without what has not.
func since(before, now map[string]float64) map[string]float64 {
	found := map[string]float64{}
	for key, value := range now {
		if value != before[key] {
			found[key] = value - before[key]
		}
	}
	return found
}
