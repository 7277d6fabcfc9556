"""Applying and deleting: the whole call is checked against what is stored, then written a batch a script call; while
Redis writes one, the next is made.

A script refuses a batch of which an object has changed since it was looked at; that object is looked at again.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dsched.clock import Clock, SystemClock
from dsched.cluster import sound
from dsched.cluster.standalone import keys, planning, stored
from dsched.cluster.standalone.claims import ClaimWriter
from dsched.cluster.standalone.cluster import DELETE_KEYS, LOG_LENGTH
from dsched.cluster.standalone.objects import Objects
from dsched.cluster.standalone.planning import Outcome, Plan, Stored
from dsched.errors import ClusterError, Conflict, ManifestError
from dsched.manifests import admission, kinds, queue_checks
from dsched.manifests.load import Manifest
from dsched.manifests.problems import Problems
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.pieces import Packed
from dsched.state.pipeline import Pipeline
from dsched.state.scripts import Script

ATTEMPTS = 20
"""How often a batch whose objects keep changing is looked at anew."""

_CHANGES = {Outcome.CREATED: "ADDED", Outcome.CONFIGURED: "MODIFIED", Outcome.REPLACED: "REPLACED"}

Item = TypeVar("Item")
Written = tuple[Plan, bytes]
"""A plan and the JSON to be stored, after its resourceVersion."""
_PODS_KEYS = state_keys.names(
    keys.ID, keys.VERSION, keys.LOG, keys.objects(kinds.POD), keys.STATE, keys.STATUS, keys.EVENTS
)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one manifest."""

    kind: kinds.Kind
    key: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Prepared:
    """New objects of one kind, as one script call takes them."""

    kind: kinds.Kind
    count: int
    packed: Packed


class Applier:
    """Writes objects to the standalone cluster in Redis. Every method raises RedisUnavailable while it does not answer.

    Args:
        log_length: about how many changes a watcher may be behind.
    """

    def __init__(self, store: Store, clock: Clock | None = None, log_length: int = LOG_LENGTH) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._log_length = log_length
        self._objects = Objects(store)
        self._putter = _Putter(store, log_length)
        self._claims = ClaimWriter(store, self._clock, log_length)
        self._delete_pods = Script(store, "pods_delete", stored.SCRIPTS)
        self._delete_objects = Script(store, "objects_delete", stored.SCRIPTS)

    def apply(
        self, manifests: Sequence[Manifest], advance: Callable[[int], None] = lambda count: None
    ) -> list[Applied]:
        """Create what is not there, change what differs; one `Applied` a manifest, in order.

        Args:
            advance: is told how many more manifests are done.

        Raises:
            ManifestError: something cannot be applied; nothing was.
            Conflict: objects were changed by others faster than they could be looked at; names what was not applied.
        """
        classes = self._classes(manifests)
        problems = Problems()
        plans: list[Plan] = []
        for kind, batch in _by_kind(manifests, lambda each: each.kind):
            plans += self._plan(kind, batch, classes, problems)
        if queues := [each for each in plans if each.manifest.kind is kinds.QUEUE]:
            planning.queues(queues, self._objects.all_of(kinds.QUEUE), problems)
        problems.raise_any()
        outcomes = {_identity(each.manifest): each.outcome for each in plans}
        for kind, of_kind in _by_kind(plans, lambda each: each.manifest.kind):
            for late in self._write(kind, of_kind, classes, advance):
                outcomes[_identity(late.manifest)] = late.outcome
        return [Applied(each.kind, each.key, outcomes[_identity(each)]) for each in manifests]

    def prepare(self, manifests: Sequence[Manifest]) -> list[Prepared]:
        """Do beforehand all that creating new objects takes but the writing; `create` writes the batches in order.

        Raises:
            ManifestError: something cannot be applied.
        """
        classes = self._classes(manifests)
        problems = Problems()
        now_ms = self._clock.now_ms()
        found: list[Prepared] = []
        for kind, batch in _by_kind(manifests, lambda each: each.kind):
            plans = [planning.plan(each, None, classes, now_ms, problems) for each in batch]
            problems.raise_any()
            made = _batches(each for each in plans if each is not None)
            found += [Prepared(kind, len(part), _pack(kind, part)) for part in made]
        return found

    def create(self, batch: Prepared) -> None:
        """Write a batch of new objects.

        Raises:
            Conflict: one of them is there already; nothing was written.
        """
        if there := self._putter.put(batch.kind, batch.packed):
            raise Conflict(f"{batch.kind.singular} {', '.join(sorted(there))}: there already; nothing was created")

    def delete(self, kind: kinds.Kind, wanted: Sequence[str]) -> list[bool]:
        """Delete objects, at once but for claims with devices: these go when no pod uses them any more. Says which were
        there.

        Raises:
            ClusterError: a queue has children that would stay; nothing was deleted.
        """
        if kind is kinds.RESOURCE_CLAIM:
            return self._claims.ask_to_go(wanted)
        if kind is kinds.QUEUE:
            self._refuse_parents(wanted)
        deleted: list[bool] = []
        for batch in pieces.cut(wanted):
            with client.reachable(self._store):
                if kind is kinds.POD:
                    packed = pieces.packed([[key, ""] for key in batch])
                    replies = self._delete_pods(DELETE_KEYS, ["", self._log_length, "", packed])
                else:
                    names = state_keys.names(keys.VERSION, keys.LOG, keys.objects(kind))
                    replies = self._delete_objects(names, [self._log_length, kind.name, pieces.packed(list(batch))])
            deleted += [bool(reply) for reply in replies]
        return deleted

    def _refuse_parents(self, wanted: Sequence[str]) -> None:
        left = list(queue_checks.left_behind(self._objects.all_of(kinds.QUEUE), wanted))
        if left:
            told = "; ".join(f"queue {name} is the parent of {', '.join(children)}" for name, children in left)
            raise ClusterError(f"{told}: delete these first or with it; nothing was deleted")

    def _classes(self, manifests: Sequence[Manifest]) -> admission.Classes:
        """Priority and storage classes as they will be after the call, as far as a manifest may refer to them:
        whoever applies a pod does not wait for what is of no use to it."""
        applied = {each.kind for each in manifests}
        after: dict[kinds.Kind, dict[str, stored.Object]] = {}
        for kind, referring in admission.REFERRING.items():
            there = self._objects.all_of(kind) if not applied.isdisjoint(referring) else []
            after[kind] = {item["metadata"]["name"]: item for item in there}
            after[kind] |= {each.key: each.value for each in manifests if each.kind is kind}
        return admission.classes(after[kinds.PRIORITY_CLASS].values(), after[kinds.STORAGE_CLASS].values())

    def _plan(
        self, kind: kinds.Kind, manifests: Sequence[Manifest], classes: admission.Classes, problems: Problems
    ) -> list[Plan]:
        found = self._stored(kind, [each.key for each in manifests])
        now_ms = self._clock.now_ms()
        plans = (planning.plan(each, found.get(each.key), classes, now_ms, problems) for each in manifests)
        return [each for each in plans if each is not None]

    def _stored(self, kind: kinds.Kind, wanted: Sequence[str]) -> Mapping[str, Stored]:
        if kind is kinds.POD:
            pods = zip(wanted, self._objects.get_pods(wanted), strict=True)
            return {key: _look_at(kind, key, raw[0], raw[1]) for key, raw in pods if raw is not None}
        found: dict[str, Stored] = {}
        for batch in pieces.cut(wanted):
            for key, raw in zip(batch, self._objects.get_json(kind, batch), strict=True):
                if raw is not None:
                    found[key] = _look_at(kind, key, raw)
        return found

    def _write(
        self, kind: kinds.Kind, plans: Sequence[Plan], classes: admission.Classes, advance: Callable[[int], None]
    ) -> list[Plan]:
        """Write what differs; returns the plans that had to be made anew meanwhile."""
        changes = [each for each in plans if each.outcome is not Outcome.UNCHANGED]
        advance(len(plans) - len(changes))
        anew: list[Plan] = []
        for batch, changed in self._written(kind, changes):
            anew += self._mend(kind, batch, changed, classes)
            advance(len(batch))
        return anew

    def _written(self, kind: kinds.Kind, changes: Sequence[Plan]) -> Iterator[tuple[Sequence[Written], set[str]]]:
        """Write plans in batches, the next of which is made while Redis writes one; gives each batch, and the keys of
        its objects that have changed: then nothing of it was written."""
        batches = _batches(changes)
        begun = next(batches, None)
        following = next(batches, None)
        if begun is None:
            return
        if following is None:  # a connection of its own would cost more than it saves
            yield begun, self._putter.put(kind, _pack(kind, begun))
            return
        line = Pipeline(self._store.redis)
        putter = _Putter(self._store.on(line), self._log_length)
        try:
            putter.begin(kind, _pack(kind, begun))
            while following is not None:
                packed = _pack(kind, following)
                yield begun, putter.changed()
                putter.begin(kind, packed)
                begun, following = following, next(batches, None)
            yield begun, putter.changed()
        finally:
            line.close()

    def _mend(
        self, kind: kinds.Kind, batch: Sequence[Written], changed: set[str], classes: admission.Classes
    ) -> list[Plan]:
        """Write a batch that was refused because of these objects; returns the plans that were made anew."""
        anew: list[Plan] = []
        for _ in range(ATTEMPTS - 1):
            if not changed:
                break
            plans = self._looked_at_again(
                kind, [each.manifest for each, _ in batch if each.manifest.key in changed], classes
            )
            kept = [each for each in batch if each[0].manifest.key not in changed]
            batch = kept + [(each, stored.tail(each.value)) for each in plans if each.outcome is not Outcome.UNCHANGED]
            anew += plans
            changed = self._putter.put(kind, _pack(kind, batch)) if batch else set()
        if changed:
            raise Conflict(f"{kind.singular} {', '.join(sorted(changed))} changed all the time; apply again")
        return anew

    def _looked_at_again(
        self, kind: kinds.Kind, manifests: Sequence[Manifest], classes: admission.Classes
    ) -> list[Plan]:
        problems = Problems()
        plans = self._plan(kind, manifests, classes, problems)
        try:
            problems.raise_any()
        except ManifestError as error:
            raise Conflict(f"{error}\nit was changed by others meanwhile; apply again to see what is left") from error
        return plans


def _by_kind(items: Iterable[Item], kind_of: Callable[[Item], kinds.Kind]) -> list[tuple[kinds.Kind, list[Item]]]:
    """In the order in which kinds are applied."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(kind_of(item).name, []).append(item)
    return [(kind, found[kind.name]) for kind in kinds.ALL if kind.name in found]


def _batches(plans: Iterable[Plan]) -> Iterator[Sequence[Written]]:
    """Plans with what is to be stored, a batch at a time: what comes later is not waited for."""
    return iter(pieces.cut(((each, stored.tail(each.value)) for each in plans), lambda written: len(written[1])))


def _look_at(kind: kinds.Kind, key: str, *raw: bytes) -> Stored:
    """What is kept of an object that is to be changed.

    Raises:
        ClusterError: it cannot be read.
    """
    why: list[Exception] = []
    found = sound.attempt(planning.look_at, raw, why.append)
    if found is None:
        told = f"{kind.singular} {key}: what is stored of it cannot be read ({why[0]})"
        raise ClusterError(f"{told}; 'dsched delete {kind.singular}' takes it away") from why[0]
    return found


def _identity(manifest: Manifest) -> tuple[str, str]:
    return manifest.kind.name, manifest.key


def _pack(kind: kinds.Kind, batch: Sequence[Written]) -> Packed:
    one = _packed_pod if kind is kinds.POD else _packed
    return pieces.packed([one(each, tail) for each, tail in batch])


def _packed(plan: Plan, tail: bytes) -> list[object]:
    return [plan.manifest.key, plan.expected, plan.value["metadata"]["uid"], tail]


def _packed_pod(plan: Plan, tail: bytes) -> list[object]:
    uid = plan.value["metadata"]["uid"]
    return [plan.manifest.key, plan.expected, _CHANGES[plan.outcome], uid, plan.node, plan.state, tail]


class _Putter:
    """Writes batches, packed as the scripts ``pods_put`` and ``objects_put`` take them.

    Every method raises RedisUnavailable while Redis does not answer.

    Args:
        store: on a line, `begin` does not wait for Redis.
        log_length: about how many changes a watcher may be behind.
    """

    def __init__(self, store: Store, log_length: int) -> None:
        self._store = store
        self._log_length = log_length
        self._pods = Script(store, "pods_put", stored.SCRIPTS)
        self._objects = Script(store, "objects_put", stored.SCRIPTS)
        self._changed: Sequence[bytes] = ()

    def put(self, kind: kinds.Kind, packed: Packed) -> set[str]:
        """Write a batch; returns the keys of its objects that have changed: then nothing of it was written."""
        self.begin(kind, packed)
        return self.changed()

    def begin(self, kind: kinds.Kind, packed: Packed) -> None:
        """Have a batch written; `changed` is to be called before the next one."""
        fresh, head = str(uuid.uuid4()), stored.head(kind)
        with client.reachable(self._store):
            if kind is kinds.POD:
                self._pods.ahead(_PODS_KEYS, [fresh, self._log_length, head, packed], self._take)
            else:
                names = state_keys.names(keys.ID, keys.VERSION, keys.LOG, keys.objects(kind))
                self._objects.ahead(names, [fresh, self._log_length, kind.name, head, packed], self._take)

    def changed(self) -> set[str]:
        """Wait for the batch that was begun; returns as `put`."""
        with client.reachable(self._store):
            self._store.settle()
        return {key.decode() for key in self._changed}

    def _take(self, changed: Sequence[bytes]) -> None:
        self._changed = changed
