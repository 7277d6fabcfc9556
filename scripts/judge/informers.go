package main

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"reflect"
	"strconv"
	"sync/atomic"
)

// informer tells its handlers of a change at once, in the goroutine that makes it: nothing is listed, nothing watched,
// and nobody has to wait until everyone has heard.
type informer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

func (i *informer) HasSynced() bool { return true }

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return registration{}, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// set makes an object new, or changes it.
func (i *informer) set(object runtime.Object) error {
	old, known, err := i.GetIndexer().Get(object)
	if err != nil {
		return err
	}
	if err := i.GetIndexer().Update(object); err != nil {
		return err
	}
	for _, each := range i.handlers {
		if known {
			each.OnUpdate(old, object)
		} else {
			each.OnAdd(object, false)
		}
	}
	return nil
}

// drop takes an object away, if it is there.
func (i *informer) drop(key string) error {
	old, known, err := i.GetIndexer().GetByKey(key)
	if err != nil || !known {
		return err
	}
	if err := i.GetIndexer().Delete(old); err != nil {
		return err
	}
	for _, each := range i.handlers {
		each.OnDelete(old)
	}
	return nil
}

// factory makes such informers for whoever asks for one.
type factory struct {
	informers.SharedInformerFactory
	client  kubernetes.Interface
	made    map[reflect.Type]*informer
	version atomic.Int64
}

func newFactory(client kubernetes.Interface) *factory {
	return &factory{
		SharedInformerFactory: informers.NewSharedInformerFactory(client, 0),
		client:                client,
		made:                  map[reflect.Type]*informer{},
	}
}

func (f *factory) InformerFor(object runtime.Object, made internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kind := reflect.TypeOf(object)
	if f.made[kind] == nil {
		f.made[kind] = &informer{SharedIndexInformer: made(f.client, 0)}
	}
	return f.made[kind]
}

func (f *factory) Apps() apps.Interface             { return apps.New(f, "", nil) }
func (f *factory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *factory) Policy() policy.Interface         { return policy.New(f, "", nil) }
func (f *factory) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *factory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// set makes an object new, or changes it. Each change has a resource version of its own: caches that assume things
// only take what is newer.
func (f *factory) set(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	f.renew(accessor)
	return f.tell(object)
}

// tell is set of an object that has its resource version.
func (f *factory) tell(object runtime.Object) error {
	if of := f.made[reflect.TypeOf(object)]; of != nil {
		return of.set(object)
	}
	return nil
}

// renew gives an object the next resource version.
func (f *factory) renew(object metav1.Object) {
	object.SetResourceVersion(strconv.FormatInt(f.version.Add(1), 10))
}
