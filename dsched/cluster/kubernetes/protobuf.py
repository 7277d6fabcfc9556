"""A Binding in Kubernetes' protobuf form, which an API server reads in a fraction of the time that JSON takes it.

Source: k8s.io/api core/v1 generated.proto ``Binding``, ``ObjectReference``; apimachinery meta/v1 generated.proto
``ObjectMeta``; pkg/runtime/generated.proto ``Unknown``; pkg/runtime/serializer/protobuf ``protoEncodingPrefix``.
"""

from dsched.model.meta import NodeName, PodUid

MAGIC = b"k8s\x00"
"""Begins every object in this form; what follows is an ``Unknown`` with the type and the object."""
_MORE, _SEVEN_BITS = 0x80, 0x7F
_LENGTH_DELIMITED = 2


def field(number: int, value: bytes) -> bytes:
    """A field that holds a string, bytes or a message; its number is below 16."""
    size, length = len(value), bytearray((number << 3 | _LENGTH_DELIMITED,))
    while size > _SEVEN_BITS:
        length.append(size & _SEVEN_BITS | _MORE)
        size >>= 7
    length.append(size)
    return bytes(length) + value


_TYPE = field(1, field(1, b"v1") + field(2, b"Binding"))
_NODE_KIND, _NODE_VERSION = field(1, b"Node"), field(5, b"v1")


def binding(namespace: str, name: str, uid: PodUid, node: NodeName) -> bytes:
    """The Binding of a pod, which must have the uid, to a node."""
    metadata = field(1, name.encode()) + field(3, namespace.encode()) + field(5, uid.encode())
    target = _NODE_KIND + field(3, node.encode()) + _NODE_VERSION
    return MAGIC + _TYPE + field(2, field(1, metadata) + field(2, target))
