package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	resource "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/kubernetes/pkg/features"
)

// selection is an expression and a device that it may select, in the form of the conformance vectors.
type selection struct {
	Expression string          `json:"expression"`
	Driver     string          `json:"driver"`
	Device     json.RawMessage `json:"device"`
}

// selected is what comes of it: a result, or an error by its kind.
type selected struct {
	Compiles bool   `json:"compiles"`
	Result   *bool  `json:"result,omitempty"`
	Error    string `json:"error,omitempty"`
	Message  string `json:"message,omitempty"`
}

// selects asks as the allocator does. Where cel-go panics, the error is of that kind, which no vector has. Source:
// k8s.io/dynamic-resource-allocation cel/compile.go.
func selects(given *selection) (found *selected, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			found, err = &selected{Error: "panic", Message: fmt.Sprint(broken)}, nil
		}
	}()
	var device resource.Device
	if err := json.Unmarshal(given.Device, &device); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	capacities := utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity)
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: capacities})
	compiled := compiler.CompileCELExpression(given.Expression, cel.Options{DisableCostEstimation: true})
	if compiled.Error != nil {
		kind := "compile"
		if strings.Contains(compiled.Error.Detail, "must evaluate to bool") {
			kind = "type"
		}
		return &selected{Error: kind, Message: compiled.Error.Detail}, nil
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver: given.Driver, Attributes: device.Attributes, Capacity: device.Capacity,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
	})
	if err == nil {
		return &selected{Compiles: true, Result: &matches}, nil
	}
	kind := "runtime"
	if strings.Contains(err.Error(), "cost limit exceeded") {
		kind = "cost"
	}
	return &selected{Compiles: true, Error: kind, Message: err.Error()}, nil
}
