package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// world is a cluster with kube-scheduler's own scheduler on it: its cache, queue and profiles hear of every object as
// they would from an API server. Nothing runs by itself.
type world struct {
	ctx       context.Context
	end       context.CancelFunc
	objects   *factory
	scheduler *scheduler.Scheduler
	refused   map[string]string // profiles that cannot be built, and why
	first     string            // the profile of pods that name none

	mu      sync.Mutex
	deleted []string // namespace/name of pods that preemption has deleted

	promises map[types.UID]string
	placed   map[types.UID]placement
	asked    *core.Pod // who was decided about last
	last     *attempt  // nil where nothing could be decided
}

// placement is what plugins hold for a pod that has a node.
type placement struct {
	profile string
	state   fwk.CycleState
	pod     *core.Pod
	node    string
}

// newWorld is empty but for the configuration; without one it is the default.
func newWorld(configuration json.RawMessage) (*world, error) {
	profiles, err := configured(configuration)
	if err != nil {
		return nil, err
	}
	made := &world{refused: map[string]string{}, promises: map[types.UID]string{}, placed: map[types.UID]placement{}}
	made.first = profiles[0].SchedulerName
	usable := []config.KubeSchedulerProfile{}
	for _, each := range profiles {
		if err := made.build([]config.KubeSchedulerProfile{each}); err != nil {
			made.refused[each.SchedulerName] = err.Error()
			continue
		}
		made.close()
		usable = append(usable, each)
	}
	if len(usable) == 0 {
		return made, nil
	}
	return made, made.build(usable)
}

// configured gives the profiles of a configuration.
func configured(raw json.RawMessage) ([]config.KubeSchedulerProfile, error) {
	made, err := configuration(raw)
	if err != nil {
		return nil, err
	}
	return made.Profiles, nil
}

// configuration is the default one where there is none.
func configuration(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return latest.Default()
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	made, is := object.(*config.KubeSchedulerConfiguration)
	if !is {
		return nil, fmt.Errorf("not a KubeSchedulerConfiguration: %T", object)
	}
	return made, nil
}

func (w *world) build(profiles []config.KubeSchedulerProfile) error {
	w.ctx, w.end = context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", w.serve)
	w.objects = newFactory(client)
	made, err := scheduler.New(w.ctx, client, w.objects, nil, recorder(&events.FakeRecorder{}), scheduler.WithProfiles(profiles...))
	if err != nil {
		w.end()
		return err
	}
	w.scheduler = made
	return nil
}

func (w *world) close() {
	if w.end != nil {
		w.end()
	}
}

// serve stands for the API server: it takes everything, and notes which pods were deleted.
func (w *world) serve(action clienttesting.Action) (bool, runtime.Object, error) {
	if deletion, is := action.(clienttesting.DeleteAction); is && action.GetResource().Resource == "pods" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.deleted = append(w.deleted, deletion.GetNamespace()+"/"+deletion.GetName())
	}
	return true, nil, nil
}

// set tells of an object that is new or has changed.
func (w *world) set(kind string, raw json.RawMessage) error {
	if w.scheduler == nil {
		return nil
	}
	object, err := read(kind, raw)
	if err != nil {
		return err
	}
	if pod, is := object.(*core.Pod); is {
		w.complete(pod)
		if pod.Spec.NodeName != "" {
			delete(w.promises, pod.UID)
		}
	}
	if err := w.objects.set(object); err != nil {
		return err
	}
	if claim, is := object.(*resource.ResourceClaim); is && claim.Status.Allocation != nil {
		w.written(claim)
	}
	return nil
}

// written says that a claim has devices: plugins that hold them for it since its pod was placed need not any more.
func (w *world) written(claim *resource.ResourceClaim) {
	for _, each := range w.scheduler.Profiles {
		if devices := each.SharedDRAManager(); devices != nil {
			forget(devices.ResourceClaims(), claim.UID)
		}
	}
	if claim.Annotations[resource.ExtendedResourceClaimAnnotation] != "" {
		for _, owner := range claim.OwnerReferences {
			w.unreserve(claim.Namespace + "/" + owner.Name)
		}
	}
}

// complete gives a pod the profile that the API server would have given it.
func (w *world) complete(pod *core.Pod) {
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = w.first
	}
}

// gone tells that an object is no more.
func (w *world) gone(kind, key string) error {
	if w.scheduler == nil {
		return nil
	}
	if _, known := kinds[kind]; !known {
		return fmt.Errorf("no such kind: %q", kind)
	}
	of := w.objects.made[typeOf(kind)]
	if of == nil {
		return nil
	}
	if kind == "pods" {
		w.unreserve(key)
	}
	return of.drop(key)
}

// unreserve has plugins give up what they hold for a pod.
func (w *world) unreserve(key string) {
	for uid, held := range w.placed {
		if held.pod.Namespace+"/"+held.pod.Name == key {
			w.scheduler.Profiles[held.profile].RunReservePluginsUnreserve(w.ctx, held.state, held.pod, held.node)
			delete(w.placed, uid)
		}
	}
}

// promise has a pod wait for a node; "" ends that.
func (w *world) promise(raw json.RawMessage, node string) error {
	if w.scheduler == nil {
		return nil
	}
	object, err := read("pods", raw)
	if err != nil {
		return err
	}
	pod := object.(*core.Pod)
	w.complete(pod)
	return w.promised(pod, node)
}

func (w *world) promised(pod *core.Pod, node string) error {
	if err := w.objects.made[typeOf("pods")].drop(pod.Namespace + "/" + pod.Name); err != nil {
		return err
	}
	delete(w.promises, pod.UID)
	if node == "" {
		return nil
	}
	w.promises[pod.UID] = node
	pod.Spec.NodeName, pod.Status.NominatedNodeName = "", node
	return w.objects.set(pod)
}

// place puts the pod that was decided last on a node, whatever was decided here.
func (w *world) place(node string) error {
	if w.scheduler == nil || w.asked == nil {
		return nil
	}
	last := w.last
	if err := w.promised(w.asked, ""); err != nil {
		return err
	}
	pod := w.asked.DeepCopy()
	pod.Spec.NodeName, pod.Status.NominatedNodeName = node, ""
	if last != nil && last.passes[node] && holds(pod) {
		if status := last.profile.RunReservePluginsReserve(w.ctx, last.state, pod, node); status.IsSuccess() {
			w.placed[pod.UID] = placement{pod.Spec.SchedulerName, last.state, pod, node}
		} else {
			last.profile.RunReservePluginsUnreserve(w.ctx, last.state, pod, node)
		}
	}
	return w.objects.set(pod)
}

// holds says whether plugins may hold something for a pod: volumes, or devices.
func holds(pod *core.Pod) bool {
	if len(pod.Spec.Volumes) > 0 || len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for _, of := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, each := range of {
			for name := range each.Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}

// profileOf is the one that is to decide about a pod, or why there is none.
func (w *world) profileOf(pod *core.Pod) (profiled, string) {
	w.complete(pod)
	name := pod.Spec.SchedulerName
	if why := w.refused[name]; why != "" {
		return nil, why
	}
	if w.scheduler != nil {
		if found := w.scheduler.Profiles[name]; found != nil {
			return found, ""
		}
	}
	return nil, fmt.Sprintf("there is no profile %q", name)
}

// snapshot brings what the plugins see up to date.
func (w *world) snapshot(of profiled) ([]fwk.NodeInfo, error) {
	seen := of.SnapshotSharedLister().(*internalcache.Snapshot)
	if err := w.scheduler.Cache.UpdateSnapshot(klog.FromContext(w.ctx), seen); err != nil {
		return nil, err
	}
	return seen.NodeInfos().List()
}
