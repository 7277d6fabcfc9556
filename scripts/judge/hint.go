package main

import (
	"encoding/json"
	"fmt"
	"sort"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// happening is a pod that plugins have rejected, each by itself, and something that happens then: an object that is new
// or has changed, one that is no more, or a change of the pod itself.
type happening struct {
	Name    string          `json:"name"`
	Pod     json.RawMessage `json:"pod"`
	Plugins []string        `json:"plugins"`
	Set     *change         `json:"set"`
	Gone    *change         `json:"gone"`
	Becomes json.RawMessage `json:"becomes"`
}

// helped says which of the plugins have the pod tried again.
type helped struct {
	Name    string   `json:"name"`
	Plugins []string `json:"helped"`
}

// nobody is who has rejected pods that are not asked about.
const nobody = "nobody"

// hint has the scheduler's own queue hold a copy of the pod for each plugin, lets the thing happen, and looks which
// copies are still where pods wait for something to happen.
func (w *world) hint(asked *happening) (helped, error) {
	copies := map[types.UID]string{}
	for _, plugin := range asked.Plugins {
		pod, err := w.copyFor(plugin, asked.Pod)
		if err != nil {
			return helped{}, err
		}
		copies[pod.UID] = plugin
		if err := w.objects.set(pod); err != nil {
			return helped{}, err
		}
	}
	if err := w.reject(copies); err != nil {
		return helped{}, err
	}
	if err := w.happen(asked); err != nil {
		return helped{}, err
	}
	found := sets.New(asked.Plugins...)
	for _, pod := range w.scheduler.SchedulingQueue.UnschedulablePods() {
		found.Delete(copies[pod.UID])
	}
	for _, plugin := range asked.Plugins {
		pod, err := w.copyFor(plugin, asked.Pod)
		if err != nil {
			return helped{}, err
		}
		if err := w.objects.made[typeOf("pods")].drop(pod.Namespace + "/" + pod.Name); err != nil {
			return helped{}, err
		}
	}
	told := sets.List(found)
	sort.Strings(told)
	return helped{asked.Name, told}, nil
}

// copyFor is the pod under a name of its own.
func (w *world) copyFor(plugin string, raw json.RawMessage) (*core.Pod, error) {
	object, err := read("pods", raw)
	if err != nil {
		return nil, err
	}
	pod := object.(*core.Pod)
	w.complete(pod)
	pod.Name, pod.UID = "copy-for-"+plugin, types.UID("copy-for-"+plugin)
	return pod, nil
}

// reject takes all that is to be tried out of the queue, and puts it back as rejected.
func (w *world) reject(copies map[types.UID]string) error {
	queue := w.scheduler.SchedulingQueue
	for len(queue.PodsInActiveQ()) > 0 {
		popped, err := pop(w)
		if err != nil {
			return err
		}
		plugin := copies[popped.Pod.UID]
		if plugin == "" {
			plugin = nobody
		}
		popped.UnschedulablePlugins = sets.New(plugin)
		if err := putBack(w, klog.FromContext(w.ctx), popped); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) happen(asked *happening) error {
	switch {
	case asked.Set != nil:
		return w.set(asked.Set.Kind, asked.Set.Object)
	case asked.Gone != nil:
		return w.gone(asked.Gone.Kind, asked.Gone.Key)
	case asked.Becomes != nil:
		for _, plugin := range asked.Plugins {
			pod, err := w.copyFor(plugin, asked.Becomes)
			if err != nil {
				return err
			}
			if err := w.objects.set(pod); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s: nothing happens", asked.Name)
}
