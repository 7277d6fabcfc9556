"""The fields of a pod's spec that dsched knows, whether scheduling reads them or not; and what else a spec has.

Known is what Kubernetes 1.34 to 1.37 have. Objects are walked into where a new field may change what scheduling does:
a field of a probe is nothing to it, one of an affinity term is.

Source: k8s.io/api v0.37.2 core/v1/types.go ``PodSpec`` and what it holds; v0.35.4 for ``workloadRef``, which later
versions do not have.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Fields: TypeAlias = Mapping[str, "Fields | None"]
"""Fields of an object by name; those of what the field holds, which may be in a list; None: not walked into."""


def _plain(names: str) -> dict[str, Fields | None]:
    return dict.fromkeys(names.split())


_SELECTOR: Fields = {"matchLabels": None, "matchExpressions": _plain("key operator values")}
_NODE_TERM: Fields = dict.fromkeys(("matchExpressions", "matchFields"), _plain("key operator values"))
_POD_TERM: Fields = {
    **_plain("namespaces topologyKey matchLabelKeys mismatchLabelKeys"),
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
}
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_POD_AFFINITY: Fields = {_REQUIRED: _POD_TERM, _PREFERRED: {"weight": None, "podAffinityTerm": _POD_TERM}}
_RESOURCES: Fields = {"limits": None, "requests": None, "claims": _plain("name request")}
_CONTAINER: Fields = {
    **_plain(
        "name image command args workingDir envFrom env resizePolicy restartPolicy volumeDevices livenessProbe "
        "readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy "
        "securityContext stdin stdinOnce tty"
    ),
    "ports": _plain("name hostPort containerPort protocol hostIP"),
    "resources": _RESOURCES,
    "restartPolicyRules": _plain("action exitCodes"),
    "volumeMounts": _plain(
        "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr bindMountOptions"
    ),
}
SPEC: Fields = {
    **_plain(
        "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName "
        "serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace "
        "securityContext imagePullSecrets hostname subdomain schedulerName hostAliases priorityClassName priority "
        "dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead setHostnameAsFQDN os "
        "hostUsers hostnameOverride evictionResponders workloadRef"
    ),
    "volumes": _plain(
        "name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs "
        "persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume "
        "quobyte azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image"
    ),
    "initContainers": _CONTAINER,
    "containers": _CONTAINER,
    "ephemeralContainers": {**_CONTAINER, "targetContainerName": None},
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": _NODE_TERM},
            _PREFERRED: {"weight": None, "preference": _NODE_TERM},
        },
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
    "tolerations": _plain("key operator value effect tolerationSeconds"),
    "topologySpreadConstraints": {
        **_plain("maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys"),
        "labelSelector": _SELECTOR,
    },
    "schedulingGates": _plain("name"),
    "schedulingGroup": _plain("podGroupName"),
    "resourceClaims": _plain("name resourceClaimName resourceClaimTemplateName"),
    "resources": _RESOURCES,
}
"""A pod's spec."""


def beyond(value: Any, known: Fields, path: str) -> Iterator[str]:
    """The paths of fields that a value has and that are not known, as ``spec.containers[].newField``; of each item of a
    list, so that one may come more than once. What is null counts as absent."""
    if isinstance(value, list):
        for item in value:
            yield from beyond(item, known, f"{path}[]")
    elif isinstance(value, dict):
        for name, held in value.items():
            if held is None:
                continue
            if name not in known:
                yield f"{path}.{name}"
            elif (inner := known[name]) is not None:
                yield from beyond(held, inner, f"{path}.{name}")
