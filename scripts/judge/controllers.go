package main

import (
	"slices"
	"sort"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// provisioning is an annotation of claims: what becomes of it when somebody is to make their volume. "host" and
// "anywhere" say where it can be reached; "fails": it cannot be made; otherwise nobody makes it.
const provisioning = "example.com/provisioning"

// storedAs says whether an object of this kind is written only if it is as it was read.
func storedAs(kind string) bool {
	return kind == "persistentVolumes" || kind == "persistentVolumeClaims"
}

// takes binds the claim that a volume is for, as the controller of volumes does.
func (r *running) takes(made *core.PersistentVolume) {
	if made.Spec.ClaimRef == nil {
		return
	}
	key := keyOf("persistentVolumeClaims", made.Spec.ClaimRef.Namespace, made.Spec.ClaimRef.Name)
	found, there := r.api[key].(*core.PersistentVolumeClaim)
	if !there || found.UID != made.Spec.ClaimRef.UID || found.Spec.VolumeName != "" {
		return
	}
	bound := made.DeepCopy()
	bound.Status.Phase = core.VolumeBound
	r.change(keyOf("persistentVolumes", "", made.Name), bound)
	claim := found.DeepCopy()
	claim.Spec.VolumeName = made.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBoundByController, "yes")
	claim.Status.Phase, claim.Status.Capacity = core.ClaimBound, made.Spec.Capacity
	claim.Status.AccessModes = made.Spec.AccessModes
	r.change(key, claim)
}

// provide makes the volume of a claim for which a node was selected, or says that it cannot be made.
func (r *running) provide(claim *core.PersistentVolumeClaim) {
	how, node := claim.Annotations[provisioning], claim.Annotations[volume.AnnSelectedNode]
	if node == "" || claim.Spec.VolumeName != "" {
		return
	}
	if how == "fails" {
		failed := claim.DeepCopy()
		delete(failed.Annotations, volume.AnnSelectedNode)
		r.change(keyOf("persistentVolumeClaims", claim.Namespace, claim.Name), failed)
		return
	}
	if how != "host" && how != "anywhere" {
		return
	}
	made := &core.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-" + claim.Name, UID: types.UID("uid-made-" + claim.Name)}}
	made.Spec.StorageClassName, made.Spec.AccessModes = *claim.Spec.StorageClassName, claim.Spec.AccessModes
	made.Spec.Capacity = claim.Spec.Resources.Requests
	made.Spec.CSI = &core.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "made-" + claim.Name}
	made.Spec.ClaimRef = &core.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	if how == "host" {
		here := core.NodeSelectorRequirement{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{node}}
		among := []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{here}}}
		made.Spec.NodeAffinity = &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: among}}
	}
	r.change(keyOf("persistentVolumes", "", made.Name), made)
	r.takes(made)
}

// keepBinding keeps what binding a claim to its volume wrote, where nobody speaks of it.
func keepBinding(claim, before *core.PersistentVolumeClaim) {
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = before.Spec.VolumeName
	}
	for _, name := range []string{volume.AnnBindCompleted, volume.AnnBoundByController, volume.AnnSelectedNode} {
		if value, there := before.Annotations[name]; there && claim.Annotations[name] == "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, name, value)
		}
	}
	if before.Spec.VolumeName != "" {
		claim.Status = before.Status
	}
}

// drive has drivers say of devices that pods wait for that they are ready, or have failed.
func (r *running) drive(what string) {
	if what == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := []string{}
	for key := range r.api {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		claim, is := r.api[key].(*resource.ResourceClaim)
		if !is || claim.Status.Allocation == nil {
			continue
		}
		claim = claim.DeepCopy()
		for _, each := range claim.Status.Allocation.Devices.Results {
			says := each.BindingConditions
			if what == "failed" {
				says = each.BindingFailureConditions
			}
			said := slices.ContainsFunc(claim.Status.Devices, func(other resource.AllocatedDeviceStatus) bool {
				return other.Driver == each.Driver && other.Pool == each.Pool && other.Device == each.Device
			})
			if len(says) == 0 || said {
				continue
			}
			status := resource.AllocatedDeviceStatus{Driver: each.Driver, Pool: each.Pool, Device: each.Device}
			for _, kind := range says {
				condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Told", Message: "so it is"}
				status.Conditions = append(status.Conditions, condition)
			}
			claim.Status.Devices = append(claim.Status.Devices, status)
		}
		if len(claim.Status.Devices) > 0 {
			r.change(key, claim)
		}
	}
}
