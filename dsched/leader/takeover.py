"""What a new leader does before it leads: put itself in the picture and settle what an earlier one left.

The order matters. Reservations are adopted first, under the new epoch, and those that hold devices are given up: from
then on no bind job of an older epoch can bind, or give devices to a claim, so what the cluster lists afterwards does
not change behind the leader's back. Killed anywhere in here, the next leader simply begins again; every step looks at
what is there.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from operator import attrgetter

from dsched import garbage
from dsched.cluster.interface import Cluster, Listing, SchedulingStatus
from dsched.framework.cycle_state import CycleState
from dsched.framework.interning import shared
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.leader import requests
from dsched.leader.binders.tracker import AssumedPod, BindTracker
from dsched.leader.failure import SCHEDULER_ERROR, Failures, parked
from dsched.leader.intake import Intake
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.leader.unreadable import set_aside
from dsched.log import logger
from dsched.metrics import PODS_PARKED, collect
from dsched.model import meta, raw
from dsched.model.meta import NO_NODE, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.scheduler.ports import Move, QueueName, Record
from dsched.scheduler.queue import PARKED, SORTED_AT_ONCE, QueuedPod, resizes
from dsched.state import devices
from dsched.state.client import Store
from dsched.state.devices import Devices
from dsched.state.queue import Records, read_records, records_ahead
from dsched.state.reservations import Reservation, read_reservations
from dsched.state.walk import LOOKED_AFTER

_log = logger(__name__)

_STANDING = frozenset({QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED, QueueName.GROUP})
"""Places of pods that wait to be tried."""
_AGE = attrgetter("pod.metadata.creation_timestamp")
_RESERVED = frozenset({QueueName.RESERVED, QueueName.WAITING})


class Takeover:
    """Brings one epoch's leader up to date; `run` returns the cluster's version to watch from."""

    def __init__(
        self,
        state: StoredState,
        memory: LeaderMemory,
        *,
        cluster: Cluster,
        binding: BindTracker,
        intake: Intake,
        failures: Failures,
        before: int = 0,
    ) -> None:
        """
        Args:
            before: the epoch under which this process led last, 0 if it did not.
        """
        self._store, self._epoch = state.store, state.epoch
        self._queue, self._reservations = state.queue, state.reservations
        self._frameworks, self._pending, self._cache = memory.frameworks, memory.pending, memory.cache
        self._events, self._groups, self._clock = memory.events, memory.groups, memory.clock
        self._cluster = cluster
        self._binding = binding
        self._intake = intake
        self._failures = failures
        self._before = before
        self._restored: list[QueuedPod] = []
        self._of_groups: list[QueuedPod] = []
        """Restored pods that stand beside a group, or name one."""
        self._regrouped: set[PodKey] = set()
        """Restored pods that are of a pod group, or were."""
        self._resorted: set[PodKey] = set()
        """Rejected pods that have another turn than what their records say."""

    def run(self) -> int:
        """List the cluster, settle, rebuild; hands adopted reservations out again. Of many rejected pods most are left
        to the loop, to be tried again in pieces (`Events.move_on`).

        Raises:
            StaleEpoch: another leader has taken over meanwhile.
        """
        with garbage.not_looked_for():
            return self._run()

    def _run(self) -> int:
        for uid, text in self._reservations.drop_unreadable().items():
            set_aside("reservation", uid, text)
        reservations = read_reservations(self._store)
        self._reservations.adopt([reservation.uid for reservation in reservations])
        recovered = self._queue.recover(self._before)
        self._give_up_devices(reservations)
        listing = self._cluster.list()
        self._take_objects(listing)
        adopted = self._settle_reservations(listing.pods)
        self._take_bound(listing)
        self._restore(listing.pods)
        self._rebuild_usage()
        self._intake.flush()
        self._queue.mark_intake(listing.version, self._frameworks, self._cluster.kind)
        self._binding.hand_out(adopted)
        _log.info(
            "leading",
            extra={
                "action": "lead",
                "epoch": self._epoch,
                "nodes": len(listing.nodes),
                "pending": len(self._pending),
                "recovered": recovered,
                "adopted": len(adopted),
            },
        )
        return listing.version

    def _take_objects(self, listing: Listing) -> None:
        for node in sorted(listing.nodes, key=lambda node: node.name):
            self._cache.set_node(node)
        for kind, objects in listing.others.items():
            for value in objects:
                self._cache.put(kind, meta.key_of(value), value)

    def _take_bound(self, listing: Listing) -> None:
        for pod in listing.pods:
            if pod.node_name and not pod.finished:
                self._cache.add_pod(shared(pod), pod.node_name)

    # -- reservations ----------------------------------------------------------------------------------------------

    def _give_up_devices(self, reservations: Sequence[Reservation]) -> None:
        """Release the reservations that hold devices: for which devices they were chosen was in the memory of the
        earlier leader. Before the listing, for a binder may be about to write to the claims which these are. Usage is
        rebuilt afterwards, and of the pods those leave the queue that are bound or gone.
        """
        holding = devices.read_held(self._store)[0]
        for reservation in reservations:
            if reservation.uid in holding:
                self._release(reservation, None, QueueName.ACTIVE)
        Devices(self._store, self._epoch).recount(())

    def _settle_reservations(self, listed: Sequence[Pod]) -> list[AssumedPod]:
        """Adopt, confirm or release them all."""
        reservations = read_reservations(self._store)
        reserved = {reservation.uid for reservation in reservations}
        pods = {pod.uid: pod for pod in listed if pod.uid in reserved} if reserved else {}
        adopted: list[AssumedPod] = []
        confirmed: list[tuple[PodKey, PodUid]] = []
        for reservation in reservations:
            pod = pods.get(reservation.uid)
            if pod is not None and pod.node_name == reservation.node:
                confirmed.append((reservation.key, reservation.uid))
            elif pod is None or pod.finished or pod.deleting or pod.node_name != NO_NODE:
                self._release(reservation, pod, QueueName.NOWHERE)
            elif self._keeps(reservation, pod) and (assumed := self._adopt(reservation, pod)) is not None:
                adopted.append(assumed)
            else:
                self._release(reservation, pod, QueueName.ACTIVE)
        self._reservations.confirm(confirmed)
        return adopted

    def _keeps(self, reservation: Reservation, pod: Pod) -> bool:
        """Permit's waits live in the memory of plugins and end with their leader; the rest is kept."""
        known = pod.spec.scheduler_name in self._frameworks
        return known and reservation.state != "waiting" and reservation.node in self._cache.snapshot.table.index

    def _adopt(self, reservation: Reservation, pod: Pod) -> AssumedPod | None:
        """Take a reservation over. Reserve runs again: what plugins had assumed, and what they had left for PreBind,
        went with the earlier leader. None when they refuse now."""
        info, state = shared(pod), CycleState()
        framework = self._frameworks[pod.spec.scheduler_name]
        self._cache.assume(info, reservation.node)
        if framework.run_reserve(state, info, reservation.node) is not None:
            self._cache.forget(info.uid, released=False)
            return None
        assumed = AssumedPod(info, reservation.node, framework, state, reservation.attempt)
        self._binding.reserve(assumed)
        return assumed

    def _release(self, reservation: Reservation, pod: Pod | None, target: QueueName) -> None:
        """Usage is rebuilt afterwards, so only the places matter here."""
        record = _record(self._store, reservation)
        turn, order = record.fields.get("place", ""), raw.whole(record.fields.get("order"))
        if target is QueueName.ACTIVE and (group := record.fields.get("group")):
            target, turn = QueueName.GROUP, group
        move = Move(reservation.key, reservation.uid, QueueName.RESERVED, target, order, turn, order)
        charged = {} if pod is None else amounts(PodInfo(pod))
        self._reservations.release([(move, reservation.node, charged)])

    # -- pending pods ----------------------------------------------------------------------------------------------

    def _restore(self, listed: Sequence[Pod]) -> None:
        """Every pending pod of ours stands in the queue, and nothing else does."""
        with closing(records_ahead(self._store)) as records:
            stale = self._restore_recorded(records, unknown := self._unknown(listed, records.look))
        self._queue.remove(stale)
        self._regroup()
        new = sorted(unknown.values(), key=_AGE)  # of those created in the same second, by version, as they are listed
        unknown.clear()
        elsewhere: list[QueuedPod] = []
        for start in range(0, len(new), SORTED_AT_ONCE):
            elsewhere += self._intake.come(new[start : start + SORTED_AT_ONCE])
            self._queue.settle()  # Redis has worked on those before meanwhile
            self._intake.flush()
        self._try_again(elsewhere)
        self._restored.clear()

    def _unknown(self, listed: Sequence[Pod], now_and_then: Callable[[], None]) -> dict[PodUid, PodInfo]:
        """The pods that are to stand in the queue, in the order of the listing: in it they lie beside each other in
        memory, while records come in none."""
        unknown: dict[PodUid, PodInfo] = {}
        for number, pod in enumerate(listed):
            if self._ours(pod):
                info = shared(pod)
                unknown[info.uid] = info
            if number % LOOKED_AFTER == 0:
                now_and_then()
        return unknown

    def _restore_recorded(self, records: Records, unknown: dict[PodUid, PodInfo]) -> list[tuple[PodKey, PodUid]]:
        """Take the pods out of ``unknown`` that stand in the queue; returns what stands there and should not."""
        stale: list[tuple[PodKey, PodUid]] = []
        now_ms = self._clock.now_ms()
        for record in read_records(self._store, records):
            info = unknown.get(record.uid)
            if info is None or info.key != record.key:
                stale.append((record.key, record.uid))
                continue
            try:
                pod = self._intake.restore(info, record, now_ms)
            except ValueError as error:
                set_aside("record", record.key, str(error))
                stale.append((record.key, record.uid))
                continue
            del unknown[info.uid]
            self._restored.append(pod)
            if pod.group or info.pod.spec.scheduling_group is not None:
                self._of_groups.append(pod)
        return stale

    def _regroup(self) -> None:
        """Pod groups are made anew of the pods that are left: what an earlier leader knew of a group beyond them, such
        as how often it was tried in vain, is forgotten. A pod whose profile knows groups no more is one by itself."""
        grouped: list[QueuedPod] = []
        moves: list[tuple[QueuedPod, Move]] = []
        for pod in self._of_groups:
            reserved = pod.place in _RESERVED
            if reserved and self._binding.assumed(pod.uid) is not None:
                continue
            if self._groups.concerns(pod.info.pod):
                grouped.append(pod)
            elif pod.group:
                pod.group = ""
                self._pending.resort(pod, self._frameworks[pod.info.pod.spec.scheduler_name])
                moves.append((pod, self._again(pod) or self._pending.move(pod, QueueName.ACTIVE)))
        moves += self._groups.rebuilt(grouped).moves
        self._events.make(moves, [collect.TAKEOVER] * len(moves))
        self._regrouped = {pod.key for pod, _ in moves} | {pod.key for pod in grouped}

    def _try_again(self, new: Sequence[QueuedPod]) -> None:
        """What was rejected is tried again, for events that happened while nobody led are not known; so is what is
        said to be reserved but is not, should Redis have lost a reservation. The configuration may be another one than
        that of the leader before: PreEnqueue and QueueSort are asked again.

        Args:
            new: pods that were taken in by this leader and may have been rejected.
        """
        rejected = [pod for pod in new if pod.rejected and pod.place is not QueueName.GROUP]
        moves: list[tuple[QueuedPod, Move]] = []
        parking: list[QueuedPod] = []
        seen, looked_at = None, False
        for start in range(0, len(self._restored), SORTED_AT_ONCE):
            standing: list[QueuedPod] = []
            for pod in self._restored[start : start + SORTED_AT_ONCE]:
                if self._regrouped and pod.key in self._regrouped:
                    continue
                if pod.place is QueueName.ACTIVE and pod.crashes >= PARKED:
                    moves.append((pod, self._park(pod)))
                    parking.append(pod)
                elif pod.place in _STANDING:
                    standing.append(pod)
                elif pod.place in _RESERVED and self._binding.assumed(pod.uid) is None:
                    moves.append((pod, self._pending.move(pod, QueueName.ACTIVE)))
            self._resorted |= {pod.key for pod in self._pending.resort_all(standing, self._frameworks)}
            for pod in standing:
                if pod.rejected:
                    rejected.append(pod)
                    continue
                if (spec := pod.info.pod.spec) is not seen:  # pods of a template share it
                    seen, looked_at = spec, self._frameworks[spec.scheduler_name].may_gate(pod.info.pod)
                if not looked_at and pod.key not in self._resorted:
                    continue  # nothing is new to it
                if (move := self._again(pod)) is not None:
                    moves.append((pod, move))
        self._events.make(moves, [collect.TAKEOVER] * len(moves))
        self._failures.tell([SchedulingStatus(pod.key, pod.uid, SCHEDULER_ERROR, _lost(pod)) for pod in parking])
        if rejected:
            self._events.leave(rejected, self._again, collect.TAKEOVER)
            self._events.move_on()

    def _park(self, pod: QueuedPod) -> Move:
        """One leader after the other was lost while it decided this pod."""
        PODS_PARKED.inc()
        _log.error("pod parked", extra={"action": "park", "pod": pod.key, "uid": pod.uid, "crashes": pod.crashes})
        self._pending.requeued(pod, self._frameworks[pod.info.pod.spec.scheduler_name], frozenset())
        return self._pending.move(pod, QueueName.BACKOFF, message=_lost(pod), error=1)

    def _again(self, pod: QueuedPod) -> Move | None:
        """The move of a pod that may be tried again, that PreEnqueue holds back now, or that has another turn where it
        stands; None for one that stays as it is."""
        waits = pod.place in (QueueName.GATED, QueueName.UNSCHEDULABLE) and requests.DROPPED not in pod.plugins
        move = self._events.move_for(pod) if waits else self._held_back(pod)
        return move or (self._pending.move(pod, pod.place) if pod.key in self._resorted else None)

    def _held_back(self, pod: QueuedPod) -> Move | None:
        if pod.place is QueueName.GATED:
            return None
        status = self._frameworks[pod.info.pod.spec.scheduler_name].run_pre_enqueue(pod.info.pod)
        if status is None:
            return None
        self._pending.held_back(pod, status.plugin)
        return self._pending.move(pod, QueueName.GATED, message=status.message)

    def _ours(self, pod: Pod) -> bool:
        spec = pod.spec
        if spec.node_name:
            return resizes(pod, self._frameworks)
        return spec.scheduler_name in self._frameworks and not pod.finished

    def _rebuild_usage(self) -> None:
        table = self._cache.snapshot.table
        self._cache.usage.rebuild([(info.name, info.offered, info.charged) for info in table.infos(range(len(table)))])
        if self._cache.limits is not None:
            self._cache.limits.restart([info for _, info in table.placed()])


def _lost(pod: QueuedPod) -> str:
    return parked(pod, "leaders were lost while they decided this pod")


def _record(store: Store, reservation: Reservation) -> Record:
    fields = store.redis.hgetall(store.key(f"pod:{reservation.key}"))
    return Record(reservation.key, {raw.text(field): raw.text(value) for field, value in fields.items()})
