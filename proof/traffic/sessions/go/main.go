// A program as controllers are written: typed clients, informers, a leader election and an event recorder of client-go.
//
// main URL protobuf|json part: the session runs it once for each part, so that a recording says what its requests are for.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

var (
	ctx    = context.Background()
	jobs   = schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
	queues = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"}
	parts  = map[string]func(*rest.Config){
		"typed": typed, "pods": pods, "informers": informing, "dynamic": dynamicKinds, "leader": leader, "events": events, "metadata": metadataOnly,
	}
)

func main() {
	config := &rest.Config{Host: os.Args[1], UserAgent: "controller/1"}
	if os.Args[2] == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	parts[os.Args[3]](config)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// refused is for what is to fail.
func refused(err error) {
	if err == nil {
		panic("this was expected to fail")
	}
	fmt.Println(err)
}

func named(name string) meta.ObjectMeta { return meta.ObjectMeta{Name: name} }

func typed(config *rest.Config) {
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	made := must(maps.Create(ctx, &core.ConfigMap{ObjectMeta: named("typed"), Data: map[string]string{"a": "1"}}, meta.CreateOptions{}))
	_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: named("typed")}, meta.CreateOptions{})
	refused(err)
	must(maps.Get(ctx, "typed", meta.GetOptions{}))
	_, err = maps.Get(ctx, "none", meta.GetOptions{})
	refused(err)
	if config.ContentType == "" { // a recording cannot put another server's version into a body in protobuf
		made.Data["a"] = "2"
		must(maps.Update(ctx, made, meta.UpdateOptions{FieldManager: "robot"}))
		_, err = maps.Update(ctx, made, meta.UpdateOptions{})
		refused(err)
		check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now := must(maps.Get(ctx, "typed", meta.GetOptions{}))
			now.Labels = map[string]string{"of": "us"}
			_, err := maps.Update(ctx, now, meta.UpdateOptions{})
			return err
		}))
	}
	for kind, patch := range map[types.PatchType]string{types.MergePatchType: `{"data":{"b":"1"}}`} {
		must(maps.Patch(ctx, "typed", kind, []byte(patch), meta.PatchOptions{}))
	}
	must(maps.Patch(ctx, "typed", types.StrategicMergePatchType, []byte(`{"data":{"c":"1"}}`), meta.PatchOptions{}))
	must(maps.Patch(ctx, "typed", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/b"}]`), meta.PatchOptions{}))
	applied := coreapply.ConfigMap("applied", "default").WithData(map[string]string{"a": "1"})
	must(maps.Apply(ctx, applied, meta.ApplyOptions{FieldManager: "robot", Force: true}))
	must(maps.List(ctx, meta.ListOptions{LabelSelector: "of=us"}))
	must(maps.List(ctx, meta.ListOptions{Limit: 1}))
	must(maps.List(ctx, meta.ListOptions{ResourceVersion: "0"}))
	background := meta.DeletePropagationBackground
	check(maps.Delete(ctx, "applied", meta.DeleteOptions{PropagationPolicy: &background}))
	check(maps.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "of=us"}))
	refused(maps.Delete(ctx, "none", meta.DeleteOptions{}))
}

func pods(config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config).CoreV1()
	one := &core.Pod{ObjectMeta: named("plain"), Spec: core.PodSpec{Containers: []core.Container{{Name: "main", Image: "busybox:1"}}}}
	must(client.Pods("default").Create(ctx, one, meta.CreateOptions{}))
	node := core.ObjectReference{Kind: "Node", Name: "node-0"}
	check(client.Pods("default").Bind(ctx, &core.Binding{ObjectMeta: named("plain"), Target: node}, meta.CreateOptions{}))
	must(client.Pods("default").Patch(ctx, "plain", types.StrategicMergePatchType, []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`), meta.PatchOptions{}, "status"))
	must(client.Pods("").List(ctx, meta.ListOptions{FieldSelector: "spec.nodeName=node-0"}))
	check(client.Pods("default").EvictV1(ctx, &policy.Eviction{ObjectMeta: named("plain")}))
	now := int64(0)
	check(client.Pods("default").Delete(ctx, "plain", meta.DeleteOptions{GracePeriodSeconds: &now}))
	must(client.Nodes().Get(ctx, "node-0", meta.GetOptions{}))
	must(client.Nodes().PatchStatus(ctx, "node-0", []byte(`{"status":{"capacity":{"example.com/thing":"2"}}}`)))
}

func informing(config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	maps := factory.Core().V1().ConfigMaps()
	kinds := []cache.SharedIndexInformer{
		maps.Informer(), factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer(), factory.Core().V1().Namespaces().Informer(),
		factory.Batch().V1().Jobs().Informer(), factory.Scheduling().V1().PriorityClasses().Informer(), factory.Policy().V1().PodDisruptionBudgets().Informer(),
	}
	stop := make(chan struct{})
	factory.Start(stop)
	for _, each := range kinds {
		cache.WaitForCacheSync(stop, each.HasSynced)
	}
	must(client.CoreV1().ConfigMaps("default").Create(ctx, &core.ConfigMap{ObjectMeta: named("heard")}, meta.CreateOptions{}))
	until(func() bool { found, _ := maps.Lister().ConfigMaps("default").List(labels.Everything()); return len(found) > 0 })
	check(client.CoreV1().ConfigMaps("default").Delete(ctx, "heard", meta.DeleteOptions{}))
	until(func() bool { _, err := maps.Lister().ConfigMaps("default").Get("heard"); return err != nil })
	close(stop)
	factory.Shutdown()
}

func until(condition func() bool) {
	for !condition() {
		time.Sleep(10 * time.Millisecond)
	}
}

func job(name string) *unstructured.Unstructured {
	container := map[string]any{"name": "main", "image": "busybox:1"}
	template := map[string]any{"spec": map[string]any{"containers": []any{container}, "restartPolicy": "Never"}}
	task := map[string]any{"name": "main", "replicas": int64(1), "template": template}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"minAvailable": int64(1), "schedulerName": "volcano", "tasks": []any{task}},
	}}
}

func dynamicKinds(config *rest.Config) {
	client := dynamic.NewForConfigOrDie(config)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	stop := make(chan struct{})
	informed := factory.ForResource(jobs)
	informed.Informer()
	factory.ForResource(queues).Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	here := client.Resource(jobs).Namespace("default")
	must(here.Create(ctx, job("dynamic"), meta.CreateOptions{}))
	until(func() bool { found, _ := informed.Lister().List(labels.Everything()); return len(found) > 0 })
	now := must(here.Get(ctx, "dynamic", meta.GetOptions{}))
	check(unstructured.SetNestedField(now.Object, "Running", "status", "state", "phase"))
	must(here.UpdateStatus(ctx, now, meta.UpdateOptions{}))
	must(here.Patch(ctx, "dynamic", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), meta.PatchOptions{}))
	must(here.Apply(ctx, "applied", job("applied"), meta.ApplyOptions{FieldManager: "robot", Force: true}))
	check(here.Delete(ctx, "dynamic", meta.DeleteOptions{}))
	until(func() bool { found, _ := informed.Lister().List(labels.Everything()); return len(found) == 1 })
	close(stop)
	factory.Shutdown()
}

func leader(config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	elected, done := context.WithCancel(ctx)
	lock := &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Namespace: "default", Name: "leader"}, Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}}
	leaderelection.RunOrDie(elected, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { done() }, OnStoppedLeading: func() {}},
	})
	must(client.CoordinationV1().Leases("default").List(ctx, meta.ListOptions{}))
	var _ *coordination.Lease
}

func events(config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	about := must(client.CoreV1().ConfigMaps("default").Create(ctx, &core.ConfigMap{ObjectMeta: named("about")}, meta.CreateOptions{}))
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: "controller"})
	recorder.Event(about, core.EventTypeNormal, "Seen", "It was seen.")
	until(func() bool { return len(must(client.CoreV1().Events("default").List(ctx, meta.ListOptions{})).Items) > 0 })
	recorder.Event(about, core.EventTypeNormal, "Seen", "It was seen.") // counted in the first
	until(func() bool { return must(client.CoreV1().Events("default").List(ctx, meta.ListOptions{})).Items[0].Count == 2 })
	broadcaster.Shutdown()
}

func metadataOnly(config *rest.Config) {
	client := metadata.NewForConfigOrDie(config)
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	must(maps.List(ctx, meta.ListOptions{}))
	must(maps.Patch(ctx, "about", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), meta.PatchOptions{}))
	must(client.Resource(jobs).Namespace("default").List(ctx, meta.ListOptions{}))
	check(maps.Delete(ctx, "about", meta.DeleteOptions{}))
	must(kubernetes.NewForConfigOrDie(config).Discovery().ServerPreferredResources())
}
