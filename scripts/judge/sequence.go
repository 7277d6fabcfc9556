package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	typedresource "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	backend "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	clocktesting "k8s.io/utils/clock/testing"
)

// sequence is a cluster from its beginning, step by step. Where it is Graceful, pods on nodes that are deleted stay, ending,
// until a step takes them away.
type sequence struct {
	Name     string          `json:"name"`
	Config   json.RawMessage `json:"config"`
	Steps    []step          `json:"steps"`
	Graceful bool            `json:"graceful"`
}

// step is what happens at once; then time goes on by so many seconds, one after the other. From now on the API server
// refuses to bind each of these pods so many times.
type step struct {
	Set     []change       `json:"set"`
	Gone    []change       `json:"gone"`
	Refuse  map[string]int `json:"refuse"`
	Advance int            `json:"advance"`
	// Names are what the statuses of pod groups say of their claims from now on.
	Names map[string]json.RawMessage `json:"names"`
	// Drivers say of devices that pods wait for that a condition of theirs holds: "ready" or "failed".
	Drivers string `json:"drivers"`
	// Nominate is what somebody else says which nodes pods that wait are to get; "": none.
	Nominate map[string]string `json:"nominate"`
}

// moment is what there is when nothing is left to be done.
type moment struct {
	Told   []saying             `json:"told"`
	Pods   map[string]seenPod   `json:"pods"`
	Groups map[string][]seenSay `json:"groups"`
	Queue  map[string]string    `json:"queue"`
	Claims map[string]seenClaim `json:"claims"`
	// Counted is what its metrics have counted since the sequence began.
	Counted map[string]float64 `json:"counted"`
}

type seenClaim struct {
	Devices []string `json:"devices"`
	For     []string `json:"for"`
	Asks    []string `json:"asks"`
}

// saying is something that the scheduler has said or done; After is how many seconds of the step had gone.
type saying struct {
	After   int    `json:"after"`
	What    string `json:"what"`
	Key     string `json:"key"`
	Node    string `json:"node,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type seenPod struct {
	Node      string    `json:"node,omitempty"`
	Nominated string    `json:"nominated,omitempty"`
	Says      []seenSay `json:"says,omitempty"`
	Extended  []string  `json:"extended,omitempty"` // container, resource and request
}

type seenSay struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// running is a scheduler with its API server, whose clock stands still between steps.
type running struct {
	ctx       context.Context
	objects   *factory
	scheduler *scheduler.Scheduler
	clock     *ticking
	deciding  sync.RWMutex // held while there is somebody to be decided
	asked     atomic.Int64 // binds that wait for an answer
	again     atomic.Int64 // when who was told of a conflict has tried again, in ns
	first     string
	after     int
	seconds   int // that have gone by in all steps
	graceful  bool

	telling sync.Mutex // held while the scheduler is told

	mu   sync.Mutex
	api  map[string]apiruntime.Object
	news []func() error
	told []saying

	refuse map[string]int
	made   int // claims whose names it has completed
}

var errRestless = errors.New("the scheduler does not come to rest")

// extended, and the name of its pod, stands for a claim that the scheduler makes, whose name nobody knows beforehand.
const extended = "extended resources of "

// refusal is what the API server says to a bind that it refuses.
const refusal = "this bind is refused"

// ticking is a clock that stands still, but that nobody reads the same time twice, as of one that goes.
type ticking struct {
	*clocktesting.FakeClock
	read atomic.Int64
}

func (c *ticking) Now() time.Time { return c.FakeClock.Now().Add(time.Duration(c.read.Add(1))) }

func (c *ticking) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// unhurried waits until nobody is left to be decided; what it returns is to be called once the answer is there.
func (r *running) unhurried() func() {
	r.asked.Add(1)
	r.deciding.RLock()
	return func() {
		r.deciding.RUnlock()
		r.asked.Add(-1)
	}
}

// slow is an API server that answers to binds, and to what is written of claims, once nobody is left to be decided, which
// takes less time.
type slow struct {
	kubernetes.Interface
	of *running
}

func (s slow) CoreV1() typed.CoreV1Interface { return slowCore{s.Interface.CoreV1(), s.of} }

type slowCore struct {
	typed.CoreV1Interface
	of *running
}

func (s slowCore) Pods(namespace string) typed.PodInterface {
	return slowPods{s.CoreV1Interface.Pods(namespace), s.of}
}

type slowPods struct {
	typed.PodInterface
	of *running
}

func (s slowPods) Bind(ctx context.Context, binding *core.Binding, options metav1.CreateOptions) error {
	defer s.of.unhurried()()
	return s.PodInterface.Bind(ctx, binding, options)
}

func (s slowCore) PersistentVolumes() typed.PersistentVolumeInterface {
	return slowVolumes{s.CoreV1Interface.PersistentVolumes(), s.of}
}

type slowVolumes struct {
	typed.PersistentVolumeInterface
	of *running
}

func (s slowVolumes) Update(ctx context.Context, volume *core.PersistentVolume, options metav1.UpdateOptions) (*core.PersistentVolume, error) {
	defer s.of.unhurried()()
	return s.PersistentVolumeInterface.Update(ctx, volume, options)
}

func (s slowCore) PersistentVolumeClaims(namespace string) typed.PersistentVolumeClaimInterface {
	return slowVolumeClaims{s.CoreV1Interface.PersistentVolumeClaims(namespace), s.of}
}

type slowVolumeClaims struct {
	typed.PersistentVolumeClaimInterface
	of *running
}

func (s slowVolumeClaims) Update(ctx context.Context, claim *core.PersistentVolumeClaim, options metav1.UpdateOptions) (*core.PersistentVolumeClaim, error) {
	defer s.of.unhurried()()
	return s.PersistentVolumeClaimInterface.Update(ctx, claim, options)
}

func (s slow) ResourceV1() typedresource.ResourceV1Interface {
	return slowDevices{s.Interface.ResourceV1(), s.of}
}

type slowDevices struct {
	typedresource.ResourceV1Interface
	of *running
}

func (s slowDevices) ResourceClaims(namespace string) typedresource.ResourceClaimInterface {
	return slowClaims{s.ResourceV1Interface.ResourceClaims(namespace), s.of}
}

type slowClaims struct {
	typedresource.ResourceClaimInterface
	of *running
}

// Create has the scheduler hear of the claim at once: it looks for it every second of a clock that nobody sets.
func (s slowClaims) Create(ctx context.Context, claim *resource.ResourceClaim, options metav1.CreateOptions) (*resource.ResourceClaim, error) {
	defer s.of.unhurried()()
	made, err := s.ResourceClaimInterface.Create(ctx, claim, options)
	if err != nil {
		return nil, err
	}
	_, err = s.of.hear()
	return made, err
}

func (s slowClaims) Update(ctx context.Context, claim *resource.ResourceClaim, options metav1.UpdateOptions) (*resource.ResourceClaim, error) {
	if len(claim.Finalizers) > 0 { // while pods are decided, devices are only taken away
		defer s.of.unhurried()()
	}
	return s.ResourceClaimInterface.Update(ctx, claim, options)
}

func (s slowClaims) UpdateStatus(ctx context.Context, claim *resource.ResourceClaim, options metav1.UpdateOptions) (*resource.ResourceClaim, error) {
	if claim.Status.Allocation != nil {
		defer s.of.unhurried()()
	}
	return s.ResourceClaimInterface.UpdateStatus(ctx, claim, options)
}

// binding is an extender that binds, once it has agreed, at the API server, which answers as for binds of the scheduler's own.
type binding struct {
	extender
	of  *running
	api kubernetes.Interface
}

func (b binding) Bind(asked *core.Binding) error {
	defer b.of.unhurried()()
	if err := b.extender.Bind(asked); err != nil {
		return err
	}
	return b.api.CoreV1().Pods(asked.Namespace).Bind(b.of.ctx, asked, metav1.CreateOptions{})
}

func runSequence(raw json.RawMessage) (any, error) {
	waits.begin()
	var given sequence
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	settings, err := configuration(given.Config)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer end()
	made := &running{
		ctx:      ctx,
		clock:    &ticking{FakeClock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))},
		first:    settings.Profiles[0].SchedulerName,
		graceful: given.Graceful,
		api:      map[string]apiruntime.Object{},
		refuse:   map[string]int{},
	}
	claimTime = made.clock.Now
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", made.serve)
	made.objects = newFactory(client)
	made.scheduler, err = scheduler.New(ctx, slow{client, made}, made.objects, nil, recorder(recording{made}),
		scheduler.WithProfiles(settings.Profiles...), scheduler.WithExtenders(settings.Extenders...), scheduler.WithClock(made.clock),
		// Nodes one after the other: which are found of a part is not up to chance then.
		scheduler.WithParallelism(1),
		scheduler.WithPercentageOfNodesToScore(settings.PercentageOfNodesToScore),
		scheduler.WithPodInitialBackoffSeconds(settings.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(settings.PodMaxBackoffSeconds))
	if err != nil {
		return nil, err
	}
	for i, each := range made.scheduler.Extenders {
		made.scheduler.Extenders[i] = binding{each, made, client}
	}
	made.scheduler.Extenders = append(made.scheduler.Extenders, ties{})
	made.scheduler.SchedulingQueue.Run(klog.FromContext(ctx))
	defer made.scheduler.SchedulingQueue.Close()
	time.Sleep(5 * time.Millisecond)
	made.deciding.Lock()
	defer made.deciding.Unlock()
	before, err := counted()
	if err != nil {
		return nil, err
	}
	moments := []moment{}
	for _, each := range given.Steps {
		if err := made.step(&each); errors.Is(err, errRestless) {
			return unanswered{given.Name, err.Error()}, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", given.Name, err)
		}
		now, err := counted()
		if err != nil {
			return nil, err
		}
		moments = append(moments, made.moment(since(before, now)))
	}
	return map[string]any{"name": given.Name, "moments": moments}, nil
}

func (r *running) step(given *step) error {
	r.after = 0
	r.mu.Lock()
	maps.Copy(r.refuse, given.Refuse)
	r.mu.Unlock()
	for _, each := range given.Gone {
		if err := r.gone(each.Kind, each.Key); err != nil {
			return err
		}
	}
	for _, each := range given.Set {
		if err := r.set(each.Kind, each.Object); err != nil {
			return err
		}
	}
	r.orphans()
	if err := r.named(given.Names); err != nil {
		return err
	}
	if err := r.nominate(given.Nominate); err != nil {
		return err
	}
	r.drive(given.Drivers)
	if err := r.rest(); err != nil {
		return err
	}
	for range given.Advance {
		r.after++
		waits.second()
		r.clock.SetTime(r.clock.Now().Truncate(time.Second).Add(time.Second))
		if r.seconds++; r.seconds%30 == 0 {
			tryOld(r.scheduler.SchedulingQueue.(*backend.PriorityQueue), klog.FromContext(r.ctx))
		}
		if err := r.rest(); err != nil {
			return err
		}
		if waits.over() {
			if err := r.rest(); err != nil {
				return err
			}
		}
	}
	return nil
}

// nominate has somebody else say which nodes pods are to get.
func (r *running) nominate(nodes map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		r.mu.Lock()
		found, is := r.api["pods/"+key].(*core.Pod)
		if !is || found.Spec.NodeName != "" {
			r.mu.Unlock()
			continue
		}
		pod := found.DeepCopy()
		pod.Status.NominatedNodeName = nodes[key]
		r.objects.renew(pod)
		r.api["pods/"+key] = pod
		r.mu.Unlock()
		if err := r.objects.tell(pod.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// rest lets the scheduler do all that there is to do.
func (r *running) rest() error {
	for range 1000 {
		r.quiet()
		heard, err := r.hear()
		if err != nil {
			return err
		}
		if r.ready() {
			r.scheduler.ScheduleOne(r.ctx)
		} else if heard == 0 && !r.bound() && !waits.look() {
			return nil
		}
	}
	return errRestless
}

// hear tells the scheduler what is new; it says how much there was.
func (r *running) hear() (int, error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	news := r.news
	r.news = nil
	r.mu.Unlock()
	for _, each := range news {
		if err := each(); err != nil {
			return 0, err
		}
	}
	return len(news), nil
}

// bound has the API server answer to binds; it says whether there were any.
func (r *running) bound() bool {
	if r.asked.Load() == 0 {
		return false
	}
	r.deciding.Unlock()
	r.quiet()
	r.deciding.Lock()
	return true
}

// ready says whether there is somebody to be tried: those who wait after an error are left alone.
func (r *running) ready() bool {
	queue := r.scheduler.SchedulingQueue
	if len(queue.PodsInActiveQ()) > 0 {
		return true
	}
	for _, pod := range queue.PodsInBackoffQ() {
		if grouped, tried := groupReady(queue, pod); grouped {
			if tried {
				return true
			}
			continue
		}
		info, there := waiting(queue, pod)
		if there && info.UnschedulablePlugins.Len()+info.PendingPlugins.Len() > 0 {
			return true
		}
	}
	return false
}

// quiet waits for what runs in the background: binds, evictions, the queue's own clockwork.
func (r *running) quiet() {
	before, calm := [2]int{}, 0
	for calm < 6 || time.Now().UnixNano() < r.again.Load() {
		time.Sleep(time.Millisecond)
		r.mu.Lock()
		now := [2]int{runtime.NumGoroutine(), len(r.news) + len(r.told)}
		r.mu.Unlock()
		if now == before {
			calm++
		} else {
			before, calm = now, 0
		}
	}
}

func (r *running) set(kind string, raw json.RawMessage) error {
	object, err := read(kind, raw)
	if err != nil {
		return err
	}
	r.clock.Step(time.Microsecond)
	accessor, _ := meta.Accessor(object)
	key := keyOf(kind, accessor.GetNamespace(), accessor.GetName())
	r.mu.Lock()
	old, known := r.api[key]
	r.mu.Unlock()
	if claim, is := old.(*resource.ResourceClaim); is && claim.UID != accessor.GetUID() {
		return nil // it is in the way of this one, which cannot be made
	}
	accessor.SetCreationTimestamp(metav1.NewTime(r.clock.Now()))
	if known {
		before, _ := meta.Accessor(old)
		accessor.SetUID(before.GetUID())
		accessor.SetCreationTimestamp(before.GetCreationTimestamp())
	}
	switch made := object.(type) {
	case *core.Pod:
		if made.Spec.SchedulerName == "" {
			made.Spec.SchedulerName = r.first
		}
		if known {
			kubelet, given, before := made.Status, made.Status.ResourceClaimStatuses, old.(*core.Pod)
			made.Spec.NodeName, made.Status = before.Spec.NodeName, *before.Status.DeepCopy()
			if len(made.Status.ResourceClaimStatuses) == 0 {
				made.Status.ResourceClaimStatuses = given
			}
			if kubelet.ContainerStatuses != nil && made.Spec.NodeName != "" {
				made.Status.ContainerStatuses, made.Status.Conditions = kubelet.ContainerStatuses, kubelet.Conditions
				resized(&made.Status, &kubelet)
			}
		}
	case *resource.ResourceClaim:
		if known {
			before := old.(*resource.ResourceClaim)
			made.Status, made.Finalizers, made.DeletionTimestamp = before.Status, before.Finalizers, before.DeletionTimestamp
		}
	case *core.PersistentVolumeClaim:
		if known {
			keepBinding(made, old.(*core.PersistentVolumeClaim))
		}
	default:
		keepGroup(made, old)
	}
	r.objects.renew(accessor)
	r.mu.Lock()
	r.api[key] = object
	r.mu.Unlock()
	if err := r.objects.tell(object.DeepCopyObject()); err != nil {
		return err
	}
	if pod, is := object.(*core.Pod); is && pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" {
		r.mu.Lock()
		r.free(pod)
		r.mu.Unlock()
	}
	return nil
}

func (r *running) gone(kind, key string) error {
	r.mu.Lock()
	found := r.api[kind+"/"+key]
	if claim, is := found.(*resource.ResourceClaim); is && len(claim.Finalizers) > 0 {
		defer r.mu.Unlock()
		ending, now := claim.DeepCopy(), metav1.NewTime(r.clock.Now())
		ending.DeletionTimestamp = &now
		r.change(kind+"/"+key, ending)
		if len(ending.Status.ReservedFor) == 0 {
			r.deallocate(kind+"/"+key, ending)
		}
		return nil
	}
	delete(r.api, kind+"/"+key)
	r.free(found)
	r.mu.Unlock()
	if of := r.objects.made[typeOf(kind)]; of != nil {
		return of.drop(key)
	}
	return nil
}

func keyOf(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// serve is the API server: what it is asked to do is done, and heard of by the scheduler later.
func (r *running) serve(action clienttesting.Action) (bool, apiruntime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := map[string]string{
		"pods": "pods", "podgroups": "podGroups", "resourceclaims": "resourceClaims",
		"persistentvolumes": "persistentVolumes", "persistentvolumeclaims": "persistentVolumeClaims",
	}[action.GetResource().Resource]
	switch asked := action.(type) {
	case clienttesting.DeleteAction:
		key := asked.GetNamespace() + "/" + asked.GetName()
		found, there := r.api[kind+"/"+key]
		if !there {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, asked.GetName())
		}
		if pod, is := found.(*core.Pod); is && r.graceful && pod.Spec.NodeName != "" {
			ending, now := pod.DeepCopy(), metav1.NewTime(r.clock.Now())
			ending.DeletionTimestamp = &now
			r.told = append(r.told, saying{r.after, "delete", key, "", "", ""})
			r.change(kind+"/"+key, ending)
			return true, nil, nil
		}
		delete(r.api, kind+"/"+key)
		if kind == "pods" {
			r.told = append(r.told, saying{r.after, "delete", key, "", "", ""})
		}
		r.news = append(r.news, func() error { return r.objects.made[typeOf(kind)].drop(key) })
		r.free(found)
	case clienttesting.PatchAction:
		return r.patch(kind, asked)
	case clienttesting.GetActionImpl:
		found, there := r.api[keyOf(kind, asked.GetNamespace(), asked.GetName())]
		if !there {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, asked.GetName())
		}
		return true, found.DeepCopyObject(), nil
	case clienttesting.CreateAction:
		if binding, is := asked.GetObject().(*core.Binding); is {
			return r.bind(binding)
		}
		if action.GetVerb() == "update" { // whose interface is the same
			return r.update(kind, asked.GetObject(), action.GetSubresource() == "status")
		}
		if claim, is := asked.GetObject().(*resource.ResourceClaim); is {
			return true, r.create(claim), nil
		}
	}
	return true, nil, nil
}

// create makes a claim whose name the API server is to complete.
func (r *running) create(asked *resource.ResourceClaim) *resource.ResourceClaim {
	r.made++
	claim := asked.DeepCopy()
	claim.Name = fmt.Sprintf("%s%05d", claim.GenerateName, r.made)
	claim.UID, claim.CreationTimestamp = types.UID("uid-made-"+claim.Name), metav1.NewTime(r.clock.Now())
	r.change(keyOf("resourceClaims", claim.Namespace, claim.Name), claim)
	return claim.DeepCopy()
}

func (r *running) bind(asked *core.Binding) (bool, apiruntime.Object, error) {
	key := "pods/" + asked.Namespace + "/" + asked.Name
	found, there := r.api[key]
	if !there {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, asked.Name)
	}
	if said := asked.Namespace + "/" + asked.Name; r.refuse[said] > 0 {
		r.refuse[said]--
		r.told = append(r.told, saying{r.after, "refuse", said, asked.Target.Name, "", ""})
		return true, nil, apierrors.NewBadRequest(refusal)
	}
	pod := found.DeepCopyObject().(*core.Pod)
	pod.Spec.NodeName, pod.Status.NominatedNodeName, pod.Status.Conditions = asked.Target.Name, "", nil
	if starts, err := time.Parse(time.RFC3339, pod.Annotations["example.com/starts"]); err == nil {
		pod.Status.StartTime = &metav1.Time{Time: starts}
	}
	r.told = append(r.told, saying{r.after, "bind", asked.Namespace + "/" + asked.Name, asked.Target.Name, "", ""})
	r.change(key, pod)
	return true, asked, nil
}

// conflict says that somebody else has written a claim since it was read; it is tried again after a while.
func (r *running) conflict(name string) error {
	r.again.Store(time.Now().Add(30 * time.Millisecond).UnixNano())
	return apierrors.NewConflict(schema.GroupResource{Resource: "resourceclaims"}, name, errors.New("it has changed"))
}

// join is what becomes of a claim that is written as it was before somebody else wrote it; false: it is to be read again.
// Pods that got the same devices together are all let in, whoever is the first.
func join(claim, found *resource.ResourceClaim, status bool) bool {
	if !status {
		claim.Status = *found.Status.DeepCopy()
		return claim.ResourceVersion == found.ResourceVersion || slices.Contains(found.Finalizers, resource.Finalizer)
	}
	claim.Finalizers = found.Finalizers
	ours, theirs := claim.Status.Allocation, found.Status.Allocation
	if ours == nil && theirs == nil {
		return true
	}
	if ours != nil && theirs != nil && !reflect.DeepEqual(ours.Devices, theirs.Devices) {
		return false
	}
	if claim.ResourceVersion != found.ResourceVersion && (ours == nil || theirs == nil) {
		return false
	}
	users := slices.Clone(found.Status.ReservedFor)
	for _, each := range claim.Status.ReservedFor {
		if !slices.Contains(users, each) {
			users = append(users, each)
		}
	}
	if ours != nil {
		claim.Status.ReservedFor = users
	}
	return true
}

// update writes an object, with its status or without.
func (r *running) update(kind string, asked apiruntime.Object, status bool) (bool, apiruntime.Object, error) {
	changed := asked.DeepCopyObject()
	accessor, err := meta.Accessor(changed)
	if err != nil {
		return true, nil, err
	}
	key := keyOf(kind, accessor.GetNamespace(), accessor.GetName())
	found, there := r.api[key]
	if !there {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, accessor.GetName())
	}
	if claim, is := changed.(*resource.ResourceClaim); is && !join(claim, found.(*resource.ResourceClaim), status) {
		return true, nil, r.conflict(claim.Name)
	}
	if claim, is := changed.(*resource.ResourceClaim); is && len(claim.Status.ReservedFor) > resource.ResourceClaimReservedForMaxSize {
		many := field.TooMany(field.NewPath("status", "reservedFor"), len(claim.Status.ReservedFor), resource.ResourceClaimReservedForMaxSize)
		kind := schema.GroupKind{Group: resource.GroupName, Kind: "ResourceClaim"}
		return true, nil, apierrors.NewInvalid(kind, claim.Name, field.ErrorList{many})
	}
	if claim, is := changed.(*resource.ResourceClaim); is {
		if allocation := claim.Status.Allocation; allocation == nil {
			claim.Status.Devices = nil
		} else if since := allocation.AllocationTimestamp; since != nil {
			whole := metav1.NewTime(since.Truncate(time.Second)) // as an API server keeps it
			allocation.AllocationTimestamp = &whole
		}
	}
	before, _ := meta.Accessor(found)
	if storedAs(kind) && before.GetResourceVersion() != accessor.GetResourceVersion() {
		other := errors.New("the object has been modified; please apply your changes to the latest version and try again")
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: strings.ToLower(kind)}, accessor.GetName(), other)
	}
	r.change(key, changed)
	written := changed.DeepCopyObject()
	switch made := changed.(type) {
	case *core.PersistentVolume:
		r.takes(made)
	case *core.PersistentVolumeClaim:
		r.provide(made)
	}
	return true, written, nil
}

// free does as the controllers do once a pod or a group is gone: nobody who uses a claim, no devices; a claim that was made
// for the pod goes with it.
func (r *running) free(object apiruntime.Object) {
	gone, is := object.(metav1.Object)
	if !is {
		return
	}
	for key, object := range r.api {
		claim, is := object.(*resource.ResourceClaim)
		if !is {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), func(user resource.ResourceClaimConsumerReference) bool {
			if user.Resource == "podgroups" {
				return r.over(claim.Namespace, user)
			}
			return user.UID == gone.GetUID()
		})
		own := metav1.IsControlledBy(claim, gone)
		if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "PodGroup" {
			own = r.over(claim.Namespace, resource.ResourceClaimConsumerReference{Name: owner.Name, UID: owner.UID})
		}
		if len(left) == len(claim.Status.ReservedFor) && !own {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = left
		if own && claim.DeletionTimestamp == nil {
			now := metav1.NewTime(r.clock.Now())
			claim.DeletionTimestamp = &now
		}
		if len(left) == 0 {
			r.deallocate(key, claim)
		} else {
			r.change(key, claim)
		}
	}
}

// orphans has claims go that were made for a pod that is not there.
func (r *running) orphans() {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := map[types.UID]bool{}
	for _, object := range r.api {
		accessor, _ := meta.Accessor(object)
		there[accessor.GetUID()] = true
	}
	for _, object := range r.api {
		claim, is := object.(*resource.ResourceClaim)
		if owner := metav1.GetControllerOf(object.(metav1.Object)); is && owner != nil && !there[owner.UID] {
			r.free(&core.Pod{ObjectMeta: metav1.ObjectMeta{UID: owner.UID, Namespace: claim.Namespace, Name: owner.Name}})
		}
	}
}

// deallocate takes the devices from a claim that nobody uses; it is gone after that, where it was to be deleted.
func (r *running) deallocate(key string, claim *resource.ResourceClaim) {
	claim = claim.DeepCopy()
	claim.Status.ReservedFor, claim.Status.Allocation, claim.Status.Devices, claim.Finalizers = nil, nil, nil, nil
	r.change(key, claim)
	if claim.DeletionTimestamp != nil {
		delete(r.api, key)
		name := claim.Namespace + "/" + claim.Name
		r.news = append(r.news, func() error { return r.objects.made[typeOf("resourceClaims")].drop(name) })
	}
}

func (r *running) change(key string, object apiruntime.Object) {
	accessor, _ := meta.Accessor(object)
	r.objects.renew(accessor)
	r.api[key] = object
	r.news = append(r.news, func() error { return r.objects.tell(object.DeepCopyObject()) })
}

func (r *running) patch(kind string, asked clienttesting.PatchAction) (bool, apiruntime.Object, error) {
	key := keyOf(kind, asked.GetNamespace(), asked.GetName())
	found, there := r.api[key]
	if !there {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, asked.GetName())
	}
	before, err := json.Marshal(found)
	if err != nil {
		return true, nil, err
	}
	changed := kinds[kind]()
	after, err := strategicpatch.StrategicMergePatch(before, asked.GetPatch(), changed)
	if err != nil {
		return true, nil, err
	}
	if err := json.Unmarshal(after, changed); err != nil {
		return true, nil, err
	}
	r.change(key, changed)
	return true, changed, nil
}

// recording takes down what the scheduler tells users.
type recording struct{ of *running }

func (r recording) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func (r recording) Eventf(regarding, _ apiruntime.Object, _, reason, _, note string, args ...any) {
	accessor, err := meta.Accessor(regarding)
	if err != nil {
		return
	}
	if len(args) > 0 {
		note = fmt.Sprintf(note, args...)
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	key := accessor.GetNamespace() + "/" + accessor.GetName()
	r.of.told = append(r.of.told, saying{r.of.after, "event", key, "", reason, note})
}

func (r *running) moment(counted map[string]float64) moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := moment{r.told, map[string]seenPod{}, map[string][]seenSay{}, map[string]string{}, map[string]seenClaim{}, counted}
	if found.Told == nil {
		found.Told = []saying{}
	}
	r.told = nil
	for _, object := range r.api {
		switch made := object.(type) {
		case *core.Pod:
			seen := seenPod{Node: made.Spec.NodeName, Nominated: made.Status.NominatedNodeName}
			for _, each := range made.Status.Conditions {
				seen.Says = append(seen.Says, seenSay{string(each.Type), string(each.Status), each.Reason, each.Message})
			}
			sort.Slice(seen.Says, func(i, j int) bool { return seen.Says[i].Type < seen.Says[j].Type })
			if status := made.Status.ExtendedResourceClaimStatus; status != nil {
				for _, each := range status.RequestMappings {
					seen.Extended = append(seen.Extended, each.ContainerName+" "+each.ResourceName+" "+each.RequestName)
				}
			}
			found.Pods[made.Namespace+"/"+made.Name] = seen
		default:
			if key, says := groupSays(made); key != "" {
				found.Groups[key] = says
			}
		}
	}
	for _, object := range r.api {
		claim, is := object.(*resource.ResourceClaim)
		if !is {
			continue
		}
		seen := seenClaim{[]string{}, []string{}, []string{}}
		if claim.Status.Allocation != nil {
			for _, each := range claim.Status.Allocation.Devices.Results {
				seen.Devices = append(seen.Devices, each.Pool+"/"+each.Device)
			}
		}
		for _, each := range claim.Status.ReservedFor {
			seen.For = append(seen.For, each.Name)
		}
		sort.Strings(seen.For)
		name := claim.Name
		if claim.Annotations[resource.ExtendedResourceClaimAnnotation] == "true" {
			name = extended + metav1.GetControllerOf(claim).Name
			for _, each := range claim.Spec.Devices.Requests {
				seen.Asks = append(seen.Asks, fmt.Sprintf("%s %d %s", each.Name, each.Exactly.Count, each.Exactly.DeviceClassName))
			}
		}
		found.Claims[claim.Namespace+"/"+name] = seen
	}
	queue := r.scheduler.SchedulingQueue
	places := map[string][]*core.Pod{
		"active": queue.PodsInActiveQ(), "backoff": queue.PodsInBackoffQ(), "waiting": queue.UnschedulablePods(),
	}
	maps.Copy(places, ofGroups(queue))
	for place, pods := range places {
		for _, pod := range pods {
			found.Queue[pod.Namespace+"/"+pod.Name] = place
		}
	}
	return found
}
