"""DynamicResources, and what only it needs.

``plugin`` has the extension points. ``pod_claims`` finds the claims of a pod, ``held_claims`` has those with devices,
``extended_resources`` the claim that is made for a pod, ``objects`` all of them decoded. ``inventory`` knows the
devices and who has them, ``judgement`` what the pods of a class are told of nodes, ``reserved`` what Reserve decides,
``binding`` what PreBind writes, ``preemption`` what has to be given up, ``hints`` which events help, ``totals`` how
many devices there are. Which devices a claim gets is the business of ``allocation``.
"""
