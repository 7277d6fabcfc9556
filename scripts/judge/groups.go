//go:build k8s_1_37

package main

import (
	"encoding/json"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1beta1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	backend "k8s.io/kubernetes/pkg/scheduler/backend/queue"
)

func init() {
	kinds["podGroups"] = func() apiruntime.Object { return &scheduling.PodGroup{} }
}

// keepGroup keeps what was said of a pod group, where it is changed.
func keepGroup(object, old apiruntime.Object) {
	made, is := object.(*scheduling.PodGroup)
	if !is {
		return
	}
	made.Generation = 1
	if before, known := old.(*scheduling.PodGroup); known {
		made.Generation, made.Status = before.Generation+1, before.Status
	}
}

// named has the statuses of groups name the claims that were made for them.
func (r *running) named(names map[string]json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, raw := range names {
		var given []scheduling.PodGroupResourceClaimStatus
		if err := json.Unmarshal(raw, &given); err != nil {
			return err
		}
		if group, there := r.api["podGroups/"+key].(*scheduling.PodGroup); there {
			group = group.DeepCopy()
			group.Status.ResourceClaimStatuses = given
			r.change("podGroups/"+key, group)
		}
	}
	return nil
}

// over says whether a group uses no claims any more: it is gone, and so are its pods that have some.
func (r *running) over(namespace string, user resource.ResourceClaimConsumerReference) bool {
	if group, is := r.api[keyOf("podGroups", namespace, user.Name)].(*scheduling.PodGroup); is && group.UID == user.UID {
		return false
	}
	for _, object := range r.api {
		pod, is := object.(*core.Pod)
		if !is || pod.Namespace != namespace || pod.Spec.SchedulingGroup == nil || len(pod.Spec.ResourceClaims) == 0 {
			continue
		}
		ended := pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
		if *pod.Spec.SchedulingGroup.PodGroupName == user.Name && !ended {
			return false
		}
	}
	return true
}

// groupReady says whether a pod in the backoff queue belongs to a group, and whether this one is to be tried.
func groupReady(queue backend.SchedulingQueue, pod *core.Pod) (grouped, ready bool) {
	if pod.Spec.SchedulingGroup == nil {
		return false, false
	}
	group, there := queue.GetPodGroup(*pod.Spec.SchedulingGroup.PodGroupName, pod.Namespace, fwk.PodGroupKeyType)
	return true, there && group.GetUnschedulablePlugins().Len()+group.GetPendingPlugins().Len() > 0
}

// groupSays gives the key of a pod group, and its conditions; "" of other objects.
func groupSays(object apiruntime.Object) (string, []seenSay) {
	made, is := object.(*scheduling.PodGroup)
	if !is {
		return "", nil
	}
	says := []seenSay{}
	for _, each := range made.Status.Conditions {
		says = append(says, seenSay{each.Type, string(each.Status), each.Reason, each.Message})
	}
	return made.Namespace + "/" + made.Name, says
}

// ofGroups are the pods of groups in the places of the queue that are theirs alone.
func ofGroups(queue backend.SchedulingQueue) map[string][]*core.Pod {
	return map[string][]*core.Pod{"inflight": queue.PendingPodGroupPods(), "alone": queue.IncompletePodGroupPodsPods()}
}
