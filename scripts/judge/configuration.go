package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kubescheduler "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// understood is what kube-scheduler makes of a configuration file, in the form of the conformance vectors.
type understood struct {
	Decoded      bool                           `json:"decoded"`
	Accepted     bool                           `json:"accepted"`
	Errors       []string                       `json:"errors,omitempty"`
	ProfileError string                         `json:"profileError,omitempty"`
	Plugins      map[string]map[string][]string `json:"plugins,omitempty"`
	Completed    json.RawMessage                `json:"completed,omitempty"`
}

// understand reads the text of a file. Source: cmd/kube-scheduler/app/options/configfile.go loadConfig.
func understand(text string) (*understood, error) {
	object, kind, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return &understood{Errors: []string{err.Error()}}, nil
	}
	made, is := object.(*config.KubeSchedulerConfiguration)
	if !is {
		return &understood{Errors: []string{fmt.Sprintf("couldn't decode as KubeSchedulerConfiguration, got %s", kind)}}, nil
	}
	made.TypeMeta.APIVersion = kind.GroupVersion().String()
	found := &understood{Decoded: true}
	if err := validation.ValidateKubeSchedulerConfiguration(made); err != nil {
		found.Errors = each(err)
		sort.Strings(found.Errors)
		return found, nil
	}
	found.Accepted = true
	if found.Completed, err = completed(made); err != nil {
		return nil, err
	}
	standing := &world{}
	defer standing.close()
	if err := standing.build(made.Profiles); err != nil {
		found.ProfileError = strings.TrimPrefix(err.Error(), "initializing profiles: ")
		return found, nil
	}
	found.Plugins = map[string]map[string][]string{}
	for name, profile := range standing.scheduler.Profiles {
		found.Plugins[name] = byPoint(profile.ListPlugins())
	}
	return found, nil
}

// each gives the errors that are told as one.
func each(err error) []string {
	var several utilerrors.Aggregate
	if !errors.As(err, &several) {
		return []string{err.Error()}
	}
	found := []string{}
	for _, one := range several.Errors() {
		found = append(found, each(one)...)
	}
	return found
}

// completed is the configuration with its defaults, as v1.
func completed(made *config.KubeSchedulerConfiguration) ([]byte, error) {
	as, is := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !is {
		return nil, errors.New("there is no serializer for JSON")
	}
	return runtime.Encode(scheme.Codecs.EncoderForVersion(as.Serializer, kubescheduler.SchemeGroupVersion), made)
}

// byPoint gives the plugins of each extension point in order; those that score with their weights.
func byPoint(plugins *config.Plugins) map[string][]string {
	found := map[string][]string{}
	sets := reflect.ValueOf(plugins).Elem()
	for i := range sets.NumField() {
		name := sets.Type().Field(i).Name
		set, is := sets.Field(i).Interface().(config.PluginSet)
		if !is || name == "MultiPoint" {
			continue
		}
		names := []string{}
		for _, plugin := range set.Enabled {
			if strings.HasSuffix(name, "Score") && name != "PreScore" {
				names = append(names, fmt.Sprintf("%s=%d", plugin.Name, plugin.Weight))
			} else {
				names = append(names, plugin.Name)
			}
		}
		found[strings.ToLower(name[:1])+name[1:]] = names
	}
	return found
}
