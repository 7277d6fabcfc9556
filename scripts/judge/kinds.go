package main

import (
	"encoding/json"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resource "k8s.io/api/resource/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"reflect"
	sigsjson "sigs.k8s.io/json"
)

// kinds are the objects of a cluster, by the names that cases have for their lists.
var kinds = map[string]func() runtime.Object{
	"nodes":                  func() runtime.Object { return &core.Node{} },
	"pods":                   func() runtime.Object { return &core.Pod{} },
	"nominated":              func() runtime.Object { return &core.Pod{} },
	"namespaces":             func() runtime.Object { return &core.Namespace{} },
	"services":               func() runtime.Object { return &core.Service{} },
	"replicationControllers": func() runtime.Object { return &core.ReplicationController{} },
	"replicaSets":            func() runtime.Object { return &apps.ReplicaSet{} },
	"statefulSets":           func() runtime.Object { return &apps.StatefulSet{} },
	"persistentVolumes":      func() runtime.Object { return &core.PersistentVolume{} },
	"persistentVolumeClaims": func() runtime.Object { return &core.PersistentVolumeClaim{} },
	"storageClasses":         func() runtime.Object { return &storage.StorageClass{} },
	"csiNodes":               func() runtime.Object { return &storage.CSINode{} },
	"csiDrivers":             func() runtime.Object { return &storage.CSIDriver{} },
	"csiStorageCapacities":   func() runtime.Object { return &storage.CSIStorageCapacity{} },
	"volumeAttachments":      func() runtime.Object { return &storage.VolumeAttachment{} },
	"podDisruptionBudgets":   func() runtime.Object { return &policy.PodDisruptionBudget{} },
	"deviceClasses":          func() runtime.Object { return &resource.DeviceClass{} },
	"resourceSlices":         func() runtime.Object { return &resource.ResourceSlice{} },
	"resourceClaims":         func() runtime.Object { return &resource.ResourceClaim{} },
	"resourceClaimTemplates": func() runtime.Object { return &resource.ResourceClaimTemplate{} },
}

// order in which the lists of a case are told: what others refer to comes first, pods last.
var order = []string{
	"namespaces", "nodes", "services", "replicationControllers", "replicaSets", "statefulSets", "storageClasses",
	"csiNodes", "csiDrivers", "csiStorageCapacities", "volumeAttachments", "persistentVolumes", "persistentVolumeClaims",
	"podDisruptionBudgets", "deviceClasses", "deviceTaintRules", "resourceSlices", "resourceClaimTemplates",
	"resourceClaims", "pods", "nominated",
}

// read gives an object as the API server would decode it.
func read(kind string, raw json.RawMessage) (runtime.Object, error) {
	made, known := kinds[kind]
	if !known {
		return nil, fmt.Errorf("no such kind: %q", kind)
	}
	object := made()
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return object, nil
}

func typeOf(kind string) reflect.Type { return reflect.TypeOf(kinds[kind]()) }
