"""Devices for claims, node by node: what kube-scheduler has in k8s.io/dynamic-resource-allocation ``structured``.

Knows slices and claims, and neither pods nor the cycle. ``allocator`` is the way in. ``requests`` reads what claims ask
for, ``slices`` what is offered; ``device_index`` and ``pools`` say what a node can use of it, ``offer`` what of this
suits a request by ``selection`` and ``capacity``, ``allocated`` what is taken. ``search`` looks for devices,
``best_fit`` in which order and how well they fit, ``results`` writes the allocation. ``features`` tells versions apart.
"""
