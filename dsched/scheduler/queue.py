"""The leader's memory of the pods that wait to be bound, beside the queue in Redis which is the truth.

Every change of place is prepared here as a `Move` and takes effect here once Redis has made it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Protocol, TypeVar

import msgspec

from dsched import backoff
from dsched.clock import Clock
from dsched.framework.interning import shared
from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model import raw, tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.model.pod_groups import PodGroup
from dsched.scheduler.nominations import FIELDS, Nomination
from dsched.scheduler.ports import Move, Popped, QueueName, Record, entity_key

_REJECTED = frozenset({QueueName.UNSCHEDULABLE, QueueName.GATED})
_By = TypeVar("_By", str, bytes)

MOST_AHEAD_MS = 10_000
"""Stamps run ahead of the clock where many pods come at once, a microsecond each. One further ahead is that of another
clock, or of Redis' before it was set; what counts from it, such as a pause, would wait until then."""


class QueuedPod(msgspec.Struct):
    """A pending pod.

    Attributes:
        queued_us: when it was last put into the queue, microseconds; fixes its turn among equals.
        rejections: attempts that plugins have ended, by which its pause is measured unless the last one has ended in an
            error.
        errors: attempts in a row that have, by which it is measured then.
        first_ms: when its first attempt began, 0 before that.
        plugins: those that rejected it last; events that they care about may move it.
        waiting: those of them that said Pending; an event that one of these cares about ends the pause as well.
        nomination: what preemption has brought it so far; None for nothing, as for most.
        crashes: processes that were lost while this pod was decided or bound, since that last went well.
        asked_us: when the plugin that gates it was last asked again because it has been gated for so long, 0 for never.
        leaving: whether it is about to be moved out of where it was rejected (`dsched.leader.events`).
        rescued: who had rejected it when no event moved it for too long and it was tried again all the same, each with
            the events that did not; empty after that attempt.
        group: key of the pod group that it is scheduled with; empty for a pod by itself.
        held: whether PreEnqueue holds it back while it stands beside its group, which holds back the group.
    """

    info: PodInfo
    place: QueueName = QueueName.NOWHERE
    queued_us: int = 0
    attempts: int = 0
    first_ms: int = 0
    plugins: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    order: int = 0
    turn: str = ""
    nomination: Nomination | None = None
    rescued: frozenset[tuple[str, str]] = frozenset()
    crashes: int = 0
    crashed: bool = False
    """Whether its record may name crashes."""
    leaving: bool = False
    asked_us: int = 0
    group: str = ""
    held: bool = False
    rejections: int = 0
    errors: int = 0

    @property
    def key(self) -> PodKey:
        return self.info.key

    @property
    def uid(self) -> PodUid:
        return self.info.uid

    @property
    def preempting(self) -> Nomination:
        """What preemption has brought it so far, to be added to."""
        if self.nomination is None:
            self.nomination = Nomination()
        return self.nomination

    @property
    def promised(self) -> NodeName:
        """The node that it is promised, ``""`` without a promise."""
        return NO_NODE if self.nomination is None else self.nomination.node

    def end_promise(self) -> NodeName:
        """Its promise is over; returns the node, ``""`` when there was none."""
        self._says_no_node()
        return NO_NODE if self.nomination is None else self.nomination.end()

    def expire_promise(self, now_ms: int) -> None:
        """Its promise ends at its deadline."""
        self._says_no_node()
        self.preempting.expire(now_ms)

    def _says_no_node(self) -> None:
        """What this leader takes off the pod is not heard of where the cluster does not tell it what it has written."""
        pod = self.info.pod
        if pod.status.nominated_node_name:
            status = msgspec.structs.replace(pod.status, nominated_node_name="")
            self.info = shared(msgspec.structs.replace(pod, status=status))

    @property
    def resizes(self) -> bool:
        """Whether it is on a node already and waits there for room (`dsched.framework.deferred_resizes`)."""
        return bool(self.info.node_name)

    @property
    def rejected(self) -> bool:
        """Whether it was turned away and is not tried again before something happens that may help it."""
        return self.held or self.place in _REJECTED


class QueuedGroup(QueuedPod):
    """A pod group as it stands in the queue, where it is what a pod is: `info` is of one of its pods.

    Attributes:
        attempts: that found no place for it in a row, by which its pause is measured where that of a pod is by
            `rejections`.
        ends_ms: when the pause after its last attempt ends; 0 where there is none. Who joins the group later does not
            change it.
        passed: the state of what PreEnqueue reads when it last let all pods beside the group go; None where it has not,
            or where a pod has changed since.
    """

    ends_ms: int = 0
    passed: tuple[int, ...] | None = None
    pod_group: PodGroup = msgspec.field(default_factory=PodGroup)

    @property
    def key(self) -> PodKey:
        return entity_key(self.pod_group.key)

    @property
    def uid(self) -> PodUid:
        return PodUid(self.pod_group.metadata.uid)


def _sorted_pod(queued: QueuedPod) -> Pod:
    """The pod by which QueueSort tells where something stands: of a group one with the group's priority."""
    pod = queued.info.pod
    if not isinstance(queued, QueuedGroup):
        return pod
    spec = msgspec.structs.replace(pod.spec, priority=queued.pod_group.priority)
    return msgspec.structs.replace(pod, spec=spec)


def resizes(pod: Pod, frameworks: Mapping[str, Framework]) -> bool:
    """Whether a pod that is on a node stands in the queue: one of ours, as long as a resize of it is deferred."""
    framework = frameworks.get(pod.spec.scheduler_name)
    return framework is not None and framework.defers(pod) and not pod.deleting and not pod.finished


_scheduler = attrgetter("info.pod.spec.scheduler_name")
_NOBODY: frozenset[str] = frozenset()


@lru_cache(maxsize=1024)
def _names(text: str) -> frozenset[str]:
    """Plugins as a record names them; a million pods have few different sets."""
    return frozenset(text.split())


_TOLD = frozenset({QueueName.ACTIVE, QueueName.BACKOFF, QueueName.GATED})
"""Places where no decision puts a pod."""
_POPPED = frozenset({QueueName.ACTIVE, QueueName.BACKOFF})
"""Places from which a pod is popped."""

SORTED_AT_ONCE = 1024
"""Pods that a plugin is asked about at once, within its time."""

WINDOW_MS = 1000
"""Pauses end with whole seconds. Source: backoff_queue.go ``backoffQOrderingWindowDuration``."""


@dataclass(slots=True)
class Backoff:
    """How long a pod that failed waits: the first pause, doubled with each attempt, up to the longest.

    Source: pkg/scheduler/backend/queue/backoff_queue.go ``calculateBackoffDuration``.
    """

    first_ms: int = 1_000
    longest_ms: int = 10_000

    def pause_ms(self, attempts: int, pods: int = 1) -> int:
        """The pause after so many attempts; the longest one grows with the root of how many pods a group has."""
        if attempts <= 0:
            return 0
        longest_ms = self.longest_ms if pods < 2 else int(self.longest_ms * math.sqrt(pods))
        return backoff.doubled(self.first_ms, attempts - 1, longest_ms)


SUSPECT = 2
"""A pod with which so many processes were lost is decided alone, so that the next time nobody else is suspected."""
PARKED = 3
"""After so many a pod is parked: its pause is minutes, twice as long each further time."""
FIRST_PARK_MS, LONGEST_PARK_MS = 60_000, 600_000


def park_ms(crashes: int) -> int:
    """How long a pod is parked after so many lost processes; 0 where it is not."""
    return 0 if crashes < PARKED else backoff.doubled(FIRST_PARK_MS, crashes - PARKED, LONGEST_PARK_MS)


class Follower(Protocol):
    """Is told where pending pods stand."""

    def moved(self, pod: QueuedPod, members: Sequence[QueuedPod] = ()) -> None:
        """A pod, or a pod group with its members, stands somewhere else, or has changed."""

    def dropped(self, pod: QueuedPod) -> None:
        """A pod is no longer pending, or no pod stands beside a group any more."""


class PendingPods:
    """Pods that wait to be bound, by key.

    Attributes:
        heard: is told of pods that come, change and go, while somebody records.
    """

    def __init__(
        self, clock: Clock, backoff: Backoff, groups: PodGroups | None = None, follower: Follower | None = None
    ) -> None:
        """
        Args:
            groups: is told of the pods that come and go.
            follower: of places, None for nobody.
        """
        self._follower = follower
        self._clock = clock
        self._told = groups or PodGroups()
        self._groups: dict[str, QueuedGroup] = {}
        self._beside: dict[str, dict[PodKey, QueuedPod]] = {}
        self._backoff = backoff
        self._pods: dict[PodKey, QueuedPod] = {}
        self._passed_over: dict[PodKey, QueuedPod] = {}
        """Pods that are being deleted and that were not tried any more when their turn came."""
        self._rejected_by: dict[str, dict[bytes, dict[PodKey, QueuedPod]]] = {}
        self._rejected_of: dict[str, dict[str, dict[PodKey, QueuedPod]]] = {}
        self._naming: dict[str, dict[PodKey, QueuedPod]] = {}
        self._last_us = 0
        self._suspects: set[PodKey] = set()
        self._poppable: set[PodKey] = set()
        self._activated: dict[PodKey, tuple[QueuedPod, bool]] = {}
        self.heard: Callable[[tape.Line], None] | None = None

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def get(self, key: PodKey) -> QueuedPod | None:
        """A pending pod, None when there is none of that name."""
        return self._pods.get(key)

    def standing(self, key: PodKey) -> QueuedPod | None:
        """A pending pod, or a pod group in the queue by its `entity_key`."""
        return self._pods.get(key) or self._groups.get(key.removeprefix(entity_key("")))

    def group(self, key: str) -> QueuedGroup | None:
        """A pod group in the queue, None where no pod stands beside it."""
        return self._groups.get(key)

    def groups(self) -> Iterator[QueuedGroup]:
        """Every pod group in the queue."""
        return iter(self._groups.values())

    def members(self, key: str) -> list[QueuedPod]:
        """The pods beside a pod group, those that are being decided with it included."""
        return list(self._beside.get(key, {}).values())

    @property
    def any_poppable(self) -> bool:
        """Whether pods, or pod groups, stand where they may be popped."""
        return bool(self._poppable)

    @property
    def any_rejected(self) -> bool:
        """Whether there are unschedulable or gated pods that some plugin rejected."""
        return any(self._rejected_by.values())

    def activate(self, keys: Iterable[PodKey]) -> None:
        """Have pods tried again soon, each with its group; those that are not pending are left out.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go ``Activate``.
        """
        for key in keys:
            pod = self._pods.get(key)
            queued = self._groups.get(pod.group) if pod is not None and pod.group else pod
            if queued is not None:
                self._activated[queued.key] = queued, queued.place is QueueName.INFLIGHT

    @property
    def any_activated(self) -> bool:
        """Whether `activated` has somebody."""
        return bool(self._activated)

    def activated(self) -> list[tuple[QueuedPod, bool]]:
        """Who was to be activated since the last call and still stands here; and whether it was in flight then: such a
        pod waits for the end of its pause, as after any event that has happened meanwhile."""
        taken, self._activated = self._activated, {}
        return [entry for key, entry in taken.items() if self.standing(key) is entry[0]]

    def rejected_by(self, plugin: str) -> Iterator[Mapping[PodKey, QueuedPod]]:
        """Unschedulable and gated pods that the plugin rejected, those of a class together."""
        return iter(self._rejected_by.get(plugin, {}).values())

    def rejected_naming(self, claim: str, plugin: str) -> Mapping[PodKey, QueuedPod]:
        """Rejected and gated pods that name a ResourceClaim, and that this plugin rejected.

        Args:
            claim: ``namespace/name``.
        """
        return {key: pod for key, pod in self._naming.get(claim, {}).items() if plugin in pod.plugins}

    def rejected_of(self, group: str, plugin: str) -> Mapping[PodKey, QueuedPod]:
        """Rejected and gated pods of a pod group that this plugin rejected.

        Args:
            group: ``namespace/name``.
        """
        return self._rejected_of.get(plugin, {}).get(group, {})

    def unschedulable_since(self, before_us: int, *, gated: bool = False) -> list[QueuedPod]:
        """Unschedulable pods that were put there before a time, but for those that are about to be moved.

        Args:
            gated: gated ones, too, whose plugin was not asked again since, and gated pod groups.
        """
        places = {QueueName.UNSCHEDULABLE, QueueName.GATED} if gated else {QueueName.UNSCHEDULABLE}
        return [
            pod
            for pod in chain(self._pods.values(), self._groups.values() if gated else ())
            if pod.place in places and max(pod.queued_us, pod.asked_us) < before_us and not pod.leaving
        ]

    def rejections(self) -> Counter[tuple[str, str]]:
        """(plugin, profile) to the unschedulable and gated pods that it rejected; from any thread."""
        return Counter(
            (plugin, pod.info.pod.spec.scheduler_name)
            for plugin, classes in tuple(self._rejected_by.items())
            for pods in tuple(classes.values())
            for pod in tuple(pods.values())
        )

    # -- changes ---------------------------------------------------------------------------------------------------

    def add(self, info: PodInfo, framework: Framework) -> QueuedPod:
        """A pod that is new to the leader; it stands nowhere until it is moved."""
        pod = QueuedPod(info, queued_us=self.stamp())
        self._sort(pod, framework)
        self._came(pod)
        return pod

    def add_all(self, infos: Sequence[PodInfo], framework: Framework) -> list[QueuedPod]:
        """`add` of many pods of a profile, in their order."""
        first_us = self.stamp()
        self._last_us = first_us + len(infos) - 1
        stamps = range(first_us, first_us + len(infos))
        turns = framework.sort_keys([info.pod for info in infos], stamps)
        pods = [
            QueuedPod(info, queued_us=us, order=order, turn=turn)
            for info, us, (order, turn) in zip(infos, stamps, turns, strict=True)
        ]
        for pod in pods:
            self._came(pod)
        return pods

    def _came(self, pod: QueuedPod) -> None:
        info = pod.info
        self._passed_over.pop(info.key, None)
        self._pods[info.key] = pod
        if info.pod.spec.scheduling_group is not None:
            self._told.add(info.pod)
        if self.heard is not None:
            self.heard(tape.Pending(info.pod, pod.queued_us))

    def restore(self, info: PodInfo, record: Record, now_ms: int | None = None) -> QueuedPod:
        """A pod as an earlier leader left it in Redis.

        Args:
            now_ms: the present time, where who restores many knows it.
        """
        fields = record.fields
        said = fields.get
        if now_ms is None:
            now_ms = self._clock.now_ms()
        queued_us = raw.strictly(said("queued_us", "0"))
        if queued_us > (now_ms + MOST_AHEAD_MS) * 1000:
            queued_us = now_ms * 1000
        pod = QueuedPod(
            info,
            record.queue,
            queued_us,
            raw.strictly(fields["attempts"]) if "attempts" in fields else 0,
            raw.strictly(fields["first_ms"]) if "first_ms" in fields else 0,
            _names(fields["plugins"]) if "plugins" in fields else _NOBODY,
            _names(fields["waiting"]) if "waiting" in fields else _NOBODY,
            raw.strictly(said("order", "0")),
            said("place", ""),
            None if FIELDS.isdisjoint(fields) else Nomination.of_fields(fields, now_ms),
            group=said("group", ""),
        )
        # An earlier version has counted attempts alone.
        pod.rejections = raw.strictly(fields["rejections"]) if "rejections" in fields else pod.attempts
        pod.errors = raw.strictly(said("errors", "0"))
        if "crashes" in fields:
            self.crashed(pod, raw.strictly(fields["crashes"]))
        if queued_us > self._last_us:
            self._last_us = queued_us
        self._pods[info.key] = pod
        if info.pod.spec.scheduling_group is not None:
            self._told.add(info.pod)
        if pod.place in _POPPED:
            self._poppable.add(info.key)
        elif pod.place in _REJECTED:
            self._index(pod)
        if self._follower is not None:
            self._follower.moved(pod)
        return pod

    def replace(self, pod: QueuedPod, info: PodInfo, framework: Framework) -> bool:
        """The pod object has changed; True when its turn has."""
        self._unindex(pod)
        if (group := self._groups.get(pod.group)) is not None:
            group.passed = None
        pod.info = info
        self._told.add(info.pod)
        self._index(pod)
        turned = self.resort(pod, framework)
        if self._follower is not None:
            self._follower.moved(pod)
        if self.heard is not None:
            self.heard(tape.Pending(info.pod, pod.queued_us))
        return turned

    def resort(self, pod: QueuedPod, framework: Framework) -> bool:
        """Sort the pod anew, as its profile does now; True when its turn has changed."""
        before = (pod.order, pod.turn)
        self._sort(pod, framework)
        return (pod.order, pod.turn) != before

    def resort_all(self, pods: Sequence[QueuedPod], frameworks: Mapping[str, Framework]) -> list[QueuedPod]:
        """Sort pods by themselves anew, as their profiles do now; returns those whose turn has changed.

        Args:
            pods: `SORTED_AT_ONCE` at most.
        """
        turned: list[QueuedPod] = []
        for scheduler, alike in groupby(pods, _scheduler):
            of_it, framework = list(alike), frameworks[scheduler]
            sorted_ = framework.sort_keys([pod.info.pod for pod in of_it], [pod.queued_us for pod in of_it])
            for pod, (order, turn) in zip(of_it, sorted_, strict=True):
                if order != pod.order or turn != pod.turn:
                    pod.order, pod.turn = order, turn
                    turned.append(pod)
        return turned

    def told_promise(self, pod: QueuedPod) -> None:
        """The pod says what it is promised."""
        node = NodeName(pod.info.pod.status.nominated_node_name)
        if node != pod.promised:
            pod.preempting.told(node, self._clock.now_ms())

    def held_back(self, pod: QueuedPod, plugin: str) -> None:
        """A PreEnqueue plugin holds the pod back from now on; it stands where it stood until it is moved."""
        self._unindex(pod)
        pod.plugins, pod.waiting, pod.leaving = frozenset({plugin}), frozenset(), False

    def place_after_attempt(self, pod: QueuedPod, framework: Framework) -> tuple[QueueName, str]:
        """Where a pod goes that was `requeued`: one that no plugin has rejected into backoff, if PreEnqueue lets it;
        and what PreEnqueue says of one that it gates.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go ``moveToBackoffQ``.
        """
        if pod.group:
            return QueueName.GROUP, ""
        if pod.plugins:
            return QueueName.UNSCHEDULABLE, ""
        status = framework.run_pre_enqueue(pod.info.pod)
        if status is None:
            return QueueName.BACKOFF, ""
        self.held_back(pod, status.plugin)
        return QueueName.GATED, status.message

    def drop(self, key: PodKey) -> QueuedPod | None:
        """The pod is no longer pending."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._poppable.discard(key)
            self._unindex(pod)
            pod.leaving = False
            if pod.info.pod.spec.scheduling_group is not None:
                self._told.drop(pod.info.pod)
            self.apart(pod)
            if self._follower is not None:
                self._follower.dropped(pod)
            if self.heard is not None:
                self.heard(tape.NoLongerPending(pod.uid))
        return pod

    def pass_over(self, key: PodKey) -> None:
        """The pod is being deleted, and not tried any more. It counts among those of its group until it is gone."""
        pod = self.drop(key)
        if pod is not None:
            self._told.add(pod.info.pod)
            self._passed_over[key] = pod

    def gone(self, key: PodKey, uid: PodUid) -> QueuedPod | None:
        """A pod is no more, or bound; returns it if it had been passed over."""
        pod = self._passed_over.get(key)
        if pod is None or pod.uid != uid:
            return None
        self._told.drop(pod.info.pod)
        return self._passed_over.pop(key)

    def add_group(self, group: QueuedGroup) -> None:
        """A pod group is new to the queue; it stands nowhere until it is moved."""
        self._groups[group.pod_group.key] = group
        self.crashed(group, group.crashes)

    def drop_group(self, key: str) -> None:
        """No pod stands beside a pod group any more."""
        group = self._groups.pop(key, None)
        if group is not None:
            self._poppable.discard(group.key)
            group.leaving = False
            if self._follower is not None:
                self._follower.dropped(group)

    def beside(self, pod: QueuedPod) -> None:
        """The pod stands beside its group from now on."""
        self._beside.setdefault(pod.group, {})[pod.key] = pod

    def apart(self, pod: QueuedPod) -> None:
        """The pod no longer stands beside its group."""
        beside = self._beside.get(pod.group, {})
        beside.pop(pod.key, None)
        if not beside:
            self._beside.pop(pod.group, None)

    def hold(self, pod: QueuedPod, plugin: str | None) -> None:
        """A PreEnqueue plugin holds back a pod that stands beside its group; None: none does any more. Until its next
        attempt it is known who did. Source: ``runPreEnqueuePlugin``."""
        if plugin is None and not pod.held:
            return
        self._unindex(pod)
        pod.held = plugin is not None
        if plugin is not None:
            pod.plugins = frozenset({plugin})
        self._index(pod)

    def placed(self, pod: QueuedPod, place: QueueName) -> None:
        """Redis has made the pod's move."""
        if pod.rejected:
            self._unindex(pod)
        let_go = pod.place is QueueName.WAITING and place is QueueName.RESERVED
        pod.place = place
        key = pod.key
        if self._pods.get(key) is pod or self.standing(key) is pod:  # a move may be heard late of one that is not
            if place in _POPPED:
                self._poppable.add(key)
            else:
                self._poppable.discard(key)
        if pod.group:
            if place in (QueueName.GROUP, QueueName.INFLIGHT):
                self.beside(pod)
            else:
                self.apart(pod)
        if pod.rejected:
            self._index(pod)
        if self._follower is not None:
            self._follower.moved(pod, self.members(pod.pod_group.key) if isinstance(pod, QueuedGroup) else ())
        if self.heard is not None and (let_go or place in _TOLD):
            self.heard(tape.Moved(pod.uid, place))

    def crashed(self, pod: QueuedPod, crashes: int) -> None:
        """So many processes have been lost with it by now; 0 when an attempt went well."""
        pod.crashes, pod.crashed = crashes, pod.crashed or crashes > 0
        if crashes >= SUSPECT:
            self._suspects.add(pod.key)

    def suspects(self) -> bool:
        """Whether pods are about to be decided that had better be decided alone."""
        if not self._suspects:
            return False
        known = [pod for key in self._suspects if (pod := self.standing(key)) is not None and pod.crashes >= SUSPECT]
        self._suspects = {pod.key for pod in known}
        return any(pod.place is QueueName.ACTIVE for pod in known)

    def popped(self, pods: Sequence[Popped]) -> list[QueuedPod]:
        """These have come in flight; returns those whose pause was not over."""
        early: list[QueuedPod] = []
        for each in pods:
            pod = self.standing(each.key)
            if pod is not None and pod.uid == each.uid:
                if pod.place is QueueName.BACKOFF:
                    early.append(pod)
                self.placed(pod, QueueName.INFLIGHT)
        return early

    def requeued(
        self,
        pod: QueuedPod,
        framework: Framework,
        plugins: frozenset[str],
        waiting: frozenset[str] = frozenset(),
    ) -> None:
        """The pod goes back into the queue after an attempt: a new time, who rejected it, and who of them waits.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go ``AddUnschedulablePodIfNotPresent``.
        """
        self._unindex(pod)
        if plugins or waiting:
            pod.rejections, pod.errors = pod.rejections + 1, 0
        else:
            pod.errors += 1
        pod.rescued, pod.leaving, pod.held = frozenset(), False, False
        pod.plugins, pod.waiting = plugins, waiting
        pod.queued_us = self.stamp()
        self._sort(pod, framework)

    # -- moves -----------------------------------------------------------------------------------------------------

    def move(self, pod: QueuedPod, target: QueueName, **fields: str | int) -> Move:
        """The move of a pod to a place; to the one where it stands, it only gets another turn there."""
        if target in (QueueName.ACTIVE, QueueName.GROUP):
            score = pod.order
        else:
            score = self.backoff_ends_ms(pod) if target is QueueName.BACKOFF else self._clock.now_ms()
        written: dict[str, str | int] = {"queued_us": pod.queued_us}
        if pod.plugins or pod.place is not QueueName.NOWHERE:
            written["plugins"] = " ".join(sorted(pod.plugins))
        if pod.waiting or pod.place is not QueueName.NOWHERE:
            written["waiting"] = " ".join(sorted(pod.waiting))
        if pod.nomination is not None:
            written |= pod.nomination.fields()
        written |= fields
        if pod.group:
            written["group"] = pod.group
        if pod.rejections or pod.errors:
            written["rejections"], written["errors"] = pod.rejections, pod.errors
        if pod.crashed:
            written["crashes"] = pod.crashes
        if pod.resizes:
            written["node"] = pod.info.node_name
        if target is not pod.place:
            written.setdefault("error", 0)
        return Move(pod.key, pod.uid, pod.place, target, score, pod.turn, pod.order, written)

    def backoff_ends_ms(self, pod: QueuedPod) -> int:
        """When the pause after the pod's last attempt ends: with the second in which it is over, so that pods whose
        pauses end in the same second come back together, in the order of the active queue.

        Source: pkg/scheduler/backend/queue/backoff_queue.go ``alignToWindow``, ``getBackoffTime``.
        """
        if isinstance(pod, QueuedGroup):
            return max(pod.ends_ms, pod.queued_us // 1000 + park_ms(pod.crashes))
        return self._ends_ms(pod, pod.errors or pod.rejections, 1)

    def pause(self, group: QueuedGroup) -> None:
        """The pause of a group begins with its turn, as long as its failed attempts and its pods make it.

        Source: pkg/scheduler/backend/queue/backoff_queue.go ``getBackoffTime``.
        """
        failed = group.errors or group.attempts
        group.ends_ms = self._ends_ms(group, failed, len(self._beside.get(group.pod_group.key, ()))) if failed else 0

    def _ends_ms(self, pod: QueuedPod, failed: int, pods: int) -> int:
        ends_ms = pod.queued_us // 1000 + max(self._backoff.pause_ms(failed, pods), park_ms(pod.crashes))
        return (ends_ms // WINDOW_MS + 1) * WINDOW_MS if failed else ends_ms

    def ready_place(self, pod: QueuedPod, *, at_once: bool = False) -> QueueName:
        """Where a pod goes that may be tried again: active, or backoff while its pause lasts.

        Args:
            at_once: what it was waiting for has come, so that its pause is over.
        """
        paused = not at_once and self.backoff_ends_ms(pod) > self._clock.now_ms()
        return QueueName.BACKOFF if paused else QueueName.ACTIVE

    def stamp(self) -> int:
        """The present time in microseconds; never the same twice, so that pods keep the order they came in."""
        self._last_us = max(self._clock.now_ms() * 1000, self._last_us + 1)
        return self._last_us

    def _sort(self, pod: QueuedPod, framework: Framework) -> None:
        if pod.group:
            pod.order, pod.turn = pod.queued_us, pod.group
        else:
            pod.order, pod.turn = framework.sort_key(_sorted_pod(pod), pod.queued_us)

    def _index(self, pod: QueuedPod) -> None:
        if not pod.rejected or isinstance(pod, QueuedGroup):
            return
        group = pod.info.pod.group_key
        key, class_key = pod.info.key, pod.info.class_key
        for plugin in pod.plugins:
            classes = self._rejected_by.get(plugin)
            if classes is None:
                classes = self._rejected_by[plugin] = {}
            alike = classes.get(class_key)
            if alike is None:
                alike = classes[class_key] = {}
            alike[key] = pod
            if group:
                self._rejected_of.setdefault(plugin, {}).setdefault(group, {})[pod.key] = pod
        for claim in pod.info.pod.named_claims:
            self._naming.setdefault(claim, {})[pod.key] = pod

    def _unindex(self, pod: QueuedPod) -> None:
        if not pod.rejected or isinstance(pod, QueuedGroup):
            return
        group = pod.info.pod.group_key
        for plugin in pod.plugins:
            _forget(self._rejected_by.get(plugin, {}), pod.info.class_key, pod.key)
            if group:
                _forget(self._rejected_of.get(plugin, {}), group, pod.key)
        for claim in pod.info.pod.named_claims:
            _forget(self._naming, claim, pod.key)


def _forget(pods_by: dict[_By, dict[PodKey, QueuedPod]], by: _By, key: PodKey) -> None:
    pods = pods_by.get(by, {})
    pods.pop(key, None)
    if not pods:
        pods_by.pop(by, None)
