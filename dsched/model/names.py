"""Which names Kubernetes takes for labels and resources.

Source: k8s.io/apimachinery pkg/util/validation/validation.go; pkg/apis/core/v1/helper/helpers.go.
"""

from functools import lru_cache

from dsched.config import names

HUGE_PAGES_PREFIX = "hugepages-"
_VOLUMES_PREFIX = "attachable-volumes-"
_NATIVE_DOMAIN = "kubernetes.io/"


@lru_cache(maxsize=4096)
def is_qualified_name(text: str) -> bool:
    """Whether text is ``name`` or ``prefix/name``, as label keys and resource names are (``IsQualifiedName``)."""
    return not names.qualified_name_problems(text)


def is_label_value(text: str) -> bool:
    """Whether a label may have this value (``IsValidLabelValue``); the empty text is one."""
    return not names.label_value_problems(text)


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Whether a resource is one that somebody outside Kubernetes defined, e.g. ``nvidia.com/gpu``
    (``IsExtendedResourceName``)."""
    return names.is_extended_resource(name)


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Whether scheduling counts a resource beside CPU, memory, ephemeral storage and pods: extended resources, huge
    pages, attachable volumes, and what carries the domain of Kubernetes; every other name is passed over.

    Source: pkg/scheduler/util/utils.go ``IsScalarResourceName``.
    """
    special = name.startswith((HUGE_PAGES_PREFIX, _VOLUMES_PREFIX)) or _NATIVE_DOMAIN in name
    return special or is_extended_resource(name)
