"""Binding through an API server, and what keeps a pod from being bound twice, or to a node that was given away.

*Bound once* (I2) is the API server's doing: ``POST pods/NAME/binding`` is a compare-and-set. It refuses a pod that has
a node, is being deleted, is gated, or has another UID than the one sent along. So a bind may be sent again when nobody
knows what became of it; an answer that leaves doubt is settled by reading the pod.

*The reservation* is not seen by the API server, unlike in standalone mode, where the bind script itself checks it. The
binder asks Redis, epoch included, right before the requests of one message are sent, and stops sending after
`PATIENCE_S`. What is left is a process that is paused between the two for longer than it takes the leader to look the
pod up, find it unbound and release the reservation, which the leader does only when a binder said that the bind failed,
when the node is gone, or under a new epoch. Such a late bind is still one bind; it may land on a node that was given
away meanwhile. The watch then says so: the pod is counted where it is, and the kubelet refuses what does not fit.

A Binding is sent in Kubernetes' protobuf form, which an API server reads in a fraction of the time that JSON takes it.

Source: pkg/registry/core/pod/storage/storage.go ``assignPod``, ``setPodNodeAndMetadata``; pkg/scheduler/framework/
plugins/defaultbinder/default_binder.go; k8s.io/api core/v1 generated.proto ``Binding``, ``ObjectReference``;
apimachinery meta/v1 generated.proto ``ObjectMeta``; pkg/runtime/generated.proto ``Unknown``; pkg/runtime/serializer/
protobuf ``protoEncodingPrefix``.
"""

from collections.abc import Sequence

import msgspec

from dsched.cluster.interface import Binding, BindOutcome, BindVerdict
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import ManyCalls, Outcome
from dsched.cluster.kubernetes.http.exchange import PROTOBUF, Answer, Request
from dsched.model import meta
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod

NOT_OF_THE_NODE = frozenset({client.UNAUTHORIZED, client.NOT_FOUND, client.CONFLICT, client.TOO_MANY})
"""Refusals that would have come for any node: ``assignPod`` answers 409 to whatever is wrong with the pod."""
NO_RIGHT = b"cannot create resource"
"""Stands in a 403 that has its reason in our own rights, as for a moment after an API server has started, and not in
that of admission. Source: apiserver/pkg/endpoints/handlers/responsewriters/errors.go ``forbiddenMessage``."""
PATIENCE_S = 8.0
"""How long a batch of binds may take, repetitions included; below what Celery and the leader wait for."""
LOOK_S = 5.0
_MAGIC = b"k8s\x00"
"""Begins every object in this form; what follows is an ``Unknown`` with the type and the object."""
_MORE, _SEVEN_BITS = 0x80, 0x7F
_LENGTH_DELIMITED = 2


class Binder:
    """Binds pods, many at once."""

    def __init__(self, many: ManyCalls) -> None:
        self._many = many

    def bind(self, bindings: Sequence[Binding]) -> list[BindOutcome]:
        """Bind pods; gives one outcome a binding, in order."""
        answers = self._many.make([request(each) for each in bindings], PATIENCE_S)
        doubtful = [
            number for number, answer in enumerate(answers) if not client.succeeded(answer) and leaves_doubt(answer)
        ]
        looked = dict(zip(doubtful, self.look([bindings[n].key for n in doubtful]), strict=True))
        return [
            outcome(each, answer, looked.get(number))
            for number, (each, answer) in enumerate(zip(bindings, answers, strict=True))
        ]

    def look(self, keys: Sequence[PodKey]) -> list[Outcome]:
        """The pods as they are now, as the API server's answers."""
        return self._many.make([Request("GET", resources.POD.path(key)) for key in keys], LOOK_S) if keys else []


def request(binding: Binding) -> Request:
    """The request to bind a pod."""
    namespace, _, name = binding.key.partition("/")
    body = _protobuf(namespace, name, binding.uid, binding.node)
    return Request("POST", f"{resources.POD.path(binding.key)}/binding", body, PROTOBUF)


def leaves_doubt(answer: Outcome) -> bool:
    """Whether the pod has to be read to know what became of a bind that did not succeed."""
    if not isinstance(answer, Answer):
        return True
    return answer.status in (client.CONFLICT, client.NOT_FOUND) or answer.status >= 500


def outcome(binding: Binding, answer: Outcome, looked: Outcome | None) -> BindOutcome:
    """What became of a bind, by the answer to it and, where that leaves doubt, by the pod as it was read afterwards."""
    if client.succeeded(answer):
        return BindOutcome(binding.key, binding.uid, BindVerdict.BOUND, binding.node)
    told = client.told(answer)
    if looked is None:  # refused for a reason that has nothing to do with the pod: not allowed, malformed, throttled
        return _ended(binding, _refusal(answer), told)
    if isinstance(looked, Answer) and looked.status == client.NOT_FOUND:
        return _ended(binding, BindVerdict.GONE, "there is no such pod")
    pod = decoded(looked)
    if pod is None:
        return _ended(binding, BindVerdict.UNKNOWN, f"{told}; the pod could not be read: {client.told(looked)}")
    return _judged(binding, answer, told, pod)


def _judged(binding: Binding, answer: Outcome, told: str, pod: Pod) -> BindOutcome:
    if pod.uid != binding.uid:
        return _ended(binding, BindVerdict.GONE, f"the pod has another uid, {pod.uid}")
    if pod.node_name == binding.node:
        return BindOutcome(binding.key, binding.uid, BindVerdict.BOUND, binding.node)
    if pod.node_name:
        return _ended(binding, BindVerdict.CONFLICT, f"the pod is bound to {pod.node_name}", pod.node_name)
    if pod.deleting:
        return _ended(binding, BindVerdict.GONE, "the pod is being deleted")
    return _ended(binding, _refusal(answer), told)


def _refusal(answer: Outcome) -> BindVerdict:
    """What an answer says that did not bind a pod which could have been bound."""
    if not isinstance(answer, Answer) or answer.status >= 500:
        return BindVerdict.UNKNOWN
    ours = answer.status == client.FORBIDDEN and NO_RIGHT in answer.body
    return BindVerdict.NOT_NOW if ours or answer.status in NOT_OF_THE_NODE else BindVerdict.REFUSED


def _ended(binding: Binding, verdict: BindVerdict, message: str, node: NodeName = NO_NODE) -> BindOutcome:
    return BindOutcome(binding.key, binding.uid, verdict, node, message)


def decoded(looked: Outcome) -> Pod | None:
    """The pod of an answer; None when it holds none."""
    if not isinstance(looked, Answer) or looked.status != 200:
        return None
    try:
        return meta.from_json(looked.body, Pod)
    except msgspec.MsgspecError:
        return None


def _field(number: int, value: bytes) -> bytes:
    """A field that holds a string, bytes or a message; its number is below 16."""
    size, length = len(value), bytearray((number << 3 | _LENGTH_DELIMITED,))
    while size > _SEVEN_BITS:
        length.append(size & _SEVEN_BITS | _MORE)
        size >>= 7
    length.append(size)
    return bytes(length) + value


_TYPE = _field(1, _field(1, b"v1") + _field(2, b"Binding"))
_NODE_KIND, _NODE_VERSION = _field(1, b"Node"), _field(5, b"v1")


def _protobuf(namespace: str, name: str, uid: PodUid, node: NodeName) -> bytes:
    """The Binding of a pod, which must have the uid, to a node."""
    metadata = _field(1, name.encode()) + _field(3, namespace.encode()) + _field(5, uid.encode())
    target = _NODE_KIND + _field(3, node.encode()) + _NODE_VERSION
    return _MAGIC + _TYPE + _field(2, _field(1, metadata) + _field(2, target))
