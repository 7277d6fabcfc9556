"""Tells a plugin of an event as the queue does."""

from typing import Any

from dsched.framework.interface import Action, ClusterEvent, Hint, Resource
from dsched.model.pod import Pod


def queues(plugin: Any, pod: Pod, resource: Resource, action: Action, old: Any = None, new: Any = None) -> bool:
    """Whether the event may make the pod schedulable that the plugin rejected."""
    event = ClusterEvent(resource, action, old, new)
    answers = [
        Hint.QUEUE if registration.hint is None else registration.hint(pod, event)
        for registration in plugin.events_to_register()
        if registration.resource is resource and action in registration.actions
    ]
    return Hint.QUEUE in answers
