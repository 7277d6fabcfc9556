"""Scheduler extenders: HTTP(S) webhooks that filter, score, preempt and bind, as kube-scheduler calls them.

The one room that speaks HTTP to extenders. Imported only where a configuration names extenders; the engine knows them
as `dsched.framework.extender.Extending`.

Source: pkg/scheduler/extender.go; staging/src/k8s.io/kube-scheduler/extender/v1/types.go.
"""
