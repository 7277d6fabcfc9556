"""DynamicResources: the claims of a pod have devices that can be used on its node, or get some there.

Reserve decides which devices the claims get and counts with them; PreBind, in a binder, writes it and looks whether the
devices are ready. While they are not it says Wait, and wants to be asked again, until ``bindingTimeout`` is over.

Pods of a class ask for the same: what nodes are told is kept for the class, the very devices are found for each pod.

Source: pkg/scheduler/framework/plugins/dynamicresources/{dynamicresources,extendeddynamicresources}.go.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.clock import Clock, SystemClock
from dsched.config import DynamicResourcesArgs, Features
from dsched.config.feature_gates import UNSAID
from dsched.engine.failed_attempt import FailedAttempt, FailedGroupAttempt
from dsched.engine.findings import Findings
from dsched.errors import PluginError, SelectorError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    SKIP,
    Code,
    Normalization,
    PlacedPod,
    PodGroupPostFilterResult,
    PostFilterResult,
    PreFilterResult,
    Registration,
    Rows,
    Scope,
    Status,
    Verdict,
    unresolvable,
    unschedulable,
)
from dsched.framework.long_search import NotYet, Searches
from dsched.framework.per_class import PerClass
from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import row_numbers
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeInfo, NodeTable
from dsched.framework.validation import failed
from dsched.lru import LRU
from dsched.model import placement_wishes
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup
from dsched.model.resource_claims import RESOURCE_CLAIM, AllocatedDevice, Allocation, DeviceRequest, ResourceClaim
from dsched.plugins.dynamic_resources import (
    binding,
    device_search,
    extended_resources,
    held_claims,
    hints,
    inventory,
    objects,
    pod_claims,
    preemption,
    reserved,
)
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, AllocationTimeout, InvalidPools
from dsched.plugins.dynamic_resources.allocation.search import Expired, never
from dsched.plugins.dynamic_resources.binding import PreBindMetrics
from dsched.plugins.dynamic_resources.held_claims import HeldClaim
from dsched.plugins.dynamic_resources.inventory import Inventory
from dsched.plugins.dynamic_resources.judgement import (
    INVALID_POOLS,
    NOT_AVAILABLE,
    NOT_SEARCHED,
    Judgement,
    Limits,
    Otherwise,
    Wish,
)
from dsched.plugins.dynamic_resources.objects import KnownClaim
from dsched.plugins.dynamic_resources.pod_claims import PodClaims
from dsched.plugins.dynamic_resources.preemption import Looked, Supposed
from dsched.plugins.dynamic_resources.reserved import Errand, Held, Reserved, ReservedClaim
from dsched.plugins.object_views import Views

_MOST_CLASSES = 256
"""Of so many classes of pods it is kept what nodes are told."""
_MOST_WAITS = 1024
"""Of so many decisions it is kept that their pods were told of as waiting."""
UNSUPPORTED = "UnsupportedFields"
"""Who refuses pods with claims where claims are not judged."""
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
WAITS = "not eligible due to devices on the nominated node that pods which are gone have yet to give back"
"""Not upstream's: see docs/preemption.md."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """PreFilter was called.

    Attributes:
        judgement: of the pod's class; None for a pod without claims.
        unavailable: claims that made nodes unavailable, of a pod of a group that was looked at.
    """

    judgement: Judgement | None = None
    unavailable: tuple[HeldClaim, ...] = ()


class _Looked(NamedTuple):
    """The claims that were looked for last, and of which version of the cluster's claims."""

    pod: Pod
    claims: Views[KnownClaim]
    version: int
    found: PodClaims


class DynamicResources:
    name = "DynamicResources"
    blind_to_plain_pods = True
    label_blind = True
    claim_blind = True
    pre_enqueue_reads = (RESOURCE_CLAIM,)
    pre_enqueue_fields = ("resource_claims",)
    takes_features = True
    filter_scope = Scope.CLUSTER
    filter_takes_open = True
    pre_filter_scope = Scope.CLUSTER
    score_scope = Scope.CLUSTER
    normalization = Normalization.MAX
    version_has_objects = True
    pre_bind_needs_shared = True
    """PreBind has nothing to do for a pod for which Reserve has left no word."""

    def __init__(self, args: DynamicResourcesArgs, handle: Any, features: Features = UNSAID) -> None:
        self._handle = handle
        self._features = features
        self._silent = features.since(37)
        self._scores_all_claims = features.since(35) and not features.since(36)
        self._extends = features.enabled("DRAExtendedResource")
        self._conditions = features.enabled("DRADeviceBindingConditions") and features.enabled(
            "DRAResourceClaimDeviceStatus"
        )
        self._filter_timeout_s = args.filter_timeout_seconds if features.enabled("DRASchedulerFilterTimeout") else 0.0
        self._binding_timeout_s = args.binding_timeout_seconds
        self._clock: Clock = getattr(handle, "clock", None) or SystemClock()
        self._resources_of = PerClass(lambda pod: extended_resources.requested(pod.pod), key=attrgetter("requests_key"))
        self._judgements: LRU[Hashable, Judgement] = LRU(_MOST_CLASSES)
        self._waits_told: LRU[Hashable, None] = LRU(_MOST_WAITS)
        self._last: _Looked | None = None
        self._searches: Searches | None = getattr(handle, "searches", None)
        self._held_up: tuple[str, float] = "", 0.0
        """The pod that was asked about last, and until when it may hold up others."""
        self._limits = Limits(self._clock.monotonic, self._begin, self._given_up, self._late)
        self._groups = features.enabled(pod_claims.GROUPS)
        self._topology = features.enabled("TopologyAwareWorkloadScheduling")
        self._places_groups = features.enabled(placement_wishes.GATE)
        self._best_fit = features.enabled("DschedDeviceBestFit")
        self._preempts = features.enabled(inventory.PREEMPTION)
        if self._preempts:  # the framework looks for these, and asks nobody who has none
            self.add_pod, self.remove_pod = self._put_there, self._take_away

    # -- before the search -----------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """All claims are there, not about to go, and the pod's."""
        if not pod.spec.resource_claims:
            return None
        problem = self._claims(pod, self._handle.snapshot).problem
        return unresolvable(problem) if problem else None

    def class_part(self, pod: PodInfo) -> bytes:
        """What tells the pod from others of its spec: which claims it has, as far as that matters."""
        spec = pod.pod.spec
        if not spec.resource_claims and not self._resources_of(pod):
            return b""
        snapshot: Snapshot = self._handle.snapshot
        return b"\0".join(self._part(pod, inventory.of(snapshot, self._features)))

    def skip_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        if pod.pod.spec.resource_claims:
            known = objects.of(snapshot)
            return known.claims.version, known.classes.version
        return objects.of(snapshot).classes.version if self._resources_of(pod) else None

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods without claims; rejects a pod whose claims cannot be used by it, or ask for unknown classes."""
        state.write(_Asked())
        # It serves no PreScore. Where no claim has alternatives, every node would score 0.
        state.skip_score.add(self.name)
        if not pod.pod.spec.resource_claims and not self._resources_of(pod):
            return SKIP
        known = inventory.of(snapshot, self._features)
        if self._preempts:
            known.look_at_pods()
            state.write(Supposed())
        named, wish = self._read(pod, snapshot, known)
        if isinstance(wish, Status):
            return wish
        if not wish.names_claims and wish.extended is None:
            return SKIP
        state.write(_Asked(self._judgement(pod, named, wish, known)))
        if self._scores(wish):
            state.skip_score.discard(self.name)
        return None

    # -- the search ------------------------------------------------------------------------------------------------

    def _put_there(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        """AddPod: a pod that was promised the node, or that was taken away, is there."""
        if (supposed := state.read(Supposed)) is not None:
            supposed.add(other)
        return None

    def _take_away(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        """RemovePod: a pod is gone, with its devices."""
        if (supposed := state.read(Supposed)) is not None:
            supposed.remove(other)
        return None

    def filter_table(
        self,
        state: CycleState,
        pod: PodInfo,
        table: NodeTable,
        rows: Rows,
        open_: Callable[[], NDArray[np.bool_]] | None = None,
    ) -> Verdict:
        """
        Args:
            open_: which of the rows no earlier filter rejected; None for all.

        Raises:
            NotYet: devices are searched for elsewhere.
        """
        judgement, supposed = self._asked(state), state.read(Supposed)
        if supposed is None or supposed.nothing:
            may_wait = self._searches is not None and not pod.pod.group_key
            over = self._hold(pod) if may_wait else never
            codes, statuses = judgement.codes(table, lambda: _open_rows(rows, open_), over)
            if judgement.search is not None and self._searches is not None:
                self._searches.ask(judgement.search, pod.uid)
                raise NotYet(self.name, "devices are being searched for")
            found = codes[rows].copy()
            if judgement.wish.pod.uid == pod.uid or not judgement.erroneous:
                return Verdict(found, statuses)
            told = {statuses[code - 1] for code in set(found.tolist()) - {0}} - {NOT_SEARCHED}
            if all(status.code is not Code.ERROR for status in told):
                return Verdict(found, statuses)
        return self._tried(judgement, pod, supposed or Supposed(), table, rows)

    def _tried(self, judgement: Judgement, pod: PodInfo, supposed: Supposed, table: NodeTable, rows: Rows) -> Verdict:
        """What nodes are told in a trial, which is about one of them, mostly. What is wrong with a claim is said of the
        pod's own, and not of that of another pod of the class."""
        statuses: list[Status] = []
        index = np.zeros(matching.count(rows), dtype=np.int32)
        gone = frozenset(supposed.gone)
        for at, row in enumerate(row_numbers(rows).tolist()):
            otherwise = Otherwise(gone, self._promised(supposed.come.values(), table, row, gone))
            status = judgement.suppose(table, row, otherwise)
            if status is not None and status.code is Code.ERROR and judgement.wish.pod.uid != pod.uid:
                judgement = self._of_itself(pod, judgement)
                status = judgement.suppose(table, row, otherwise)
            if status is not None:
                statuses += [status] if status not in statuses else []
                index[at] = statuses.index(status) + 1
        return Verdict(index, tuple(statuses))

    def _of_itself(self, pod: PodInfo, judgement: Judgement) -> Judgement:
        """What a pod is told by itself, and not with its class."""
        snapshot: Snapshot = self._handle.snapshot
        known = inventory.of(snapshot, self._features)
        _, wish = self._read(pod, snapshot, known)
        return judgement if isinstance(wish, Status) else Judgement(wish, known, self._limits)

    def _promised(
        self, pods: Iterable[PodInfo], table: NodeTable, row: int, gone: frozenset[str]
    ) -> tuple[AllocatedDevice, ...]:
        """The devices that pods would get which were promised the node."""
        snapshot: Snapshot = self._handle.snapshot
        known = inventory.of(snapshot, self._features)

        def judgement(pod: PodInfo) -> Judgement | None:
            if not pod.pod.spec.resource_claims and not self._resources_of(pod):
                return None
            named, wish = self._read(pod, snapshot, known)
            return None if isinstance(wish, Status) else self._judgement(pod, named, wish, known)

        return preemption.promised_devices(pods, judgement, table, row, gone)

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        known = inventory.of(snapshot, self._features)
        if self._preempts:
            known.look_at_pods()
        named, earlier = self._claims(pod.pod, snapshot), known.extended_claim(pod.uid)
        held = tuple((claim, self._given_up(claim.record)) for claim in named.claims if claim.allocation is not None)
        shared = tuple(claim for claim in named.claims if claim.allocation is None and known.shared(claim) is not None)
        at = known.index.version, known.allocated.version, known.objects.classes.version
        return *at, named.problem, held, shared, earlier

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Alternatives that come earlier are better; with ``DschedDeviceBestFit`` also nodes that fit better.

        Raises:
            PluginFailure: 1.35 and a pod with devices that needs others, see `_cannot_score`.
        """
        asked, found = state.read(_Asked), np.zeros(matching.count(rows), dtype=np.int64)
        if asked is None or asked.judgement is None or not self._scores(asked.judgement.wish):
            return found
        if self._cannot_score(wish := asked.judgement.wish):
            words = f"number of allocations {wish.needed} is smaller than number of claims"
            raise failed(
                Status(Code.ERROR, (f'running Score plugins: plugin "{self.name}" failed with: {words}',), self.name)
            )
        numbers = row_numbers(rows)
        fits = asked.judgement.codes(table.cluster)[0][numbers] == 0
        found[fits] = asked.judgement.points(table.cluster, numbers[fits].tolist())
        return found

    def _scores(self, wish: Wish) -> bool:
        """Whether nodes may differ in how much they are liked."""
        return wish.scores or (self._best_fit and wish.needed > 0) or self._cannot_score(wish)

    def _cannot_score(self, wish: Wish) -> bool:
        """Whether the attempt ends here: 1.35 looks for all claims, one after the other, among those that were found
        devices for just now.

        Source: dynamicresources.go ``computeScore``, of 1.35.
        """
        return self._scores_all_claims and bool(wish.held) and wish.needed > 0

    # -- when there is no node -------------------------------------------------------------------------------------

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        """Take the devices of one claim away, if nobody else uses it and that might help.

        Where an earlier PreFilter plugin ended the attempt, this one has not run: upstream fails to read what it would
        have written, and says so.

        Source: ``PostFilter``, ``deallocateOrDeletePodClaims``, ``getStateData``.
        """
        if attempt.framework.defers(attempt.pod.pod):
            return PostFilterResult(None, unschedulable())
        asked, rejection = attempt.state.read(_Asked), attempt.evaluation.rejection
        if asked is None and attempt.pod.pod.spec.resource_claims and rejection and rejection.plugin == UNSUPPORTED:
            return PostFilterResult(None, unschedulable())
        if asked is None:
            return PostFilterResult(None, Status(Code.ERROR, ("not found",)))
        if asked.judgement is None:
            return PostFilterResult(None, unschedulable(*([] if self._silent else ["no new claims to deallocate"])))
        known = inventory.of(attempt.snapshot, self._features)
        unavailable = self._unavailable(attempt.snapshot.table, attempt.evaluation, asked.judgement)
        freed = preemption.for_pod(attempt.pod.uid, asked.judgement, unavailable, known)
        if freed.deallocation is not None:
            return PostFilterResult(None, unschedulable(DEALLOCATED), deallocations=(freed.deallocation,))
        if freed.deletion is not None:
            return PostFilterResult(None, unschedulable(DELETED), deleted_claims=(freed.deletion,))
        if self._waits(attempt, asked.judgement, known):
            return PostFilterResult(None, unresolvable(WAITS))
        return PostFilterResult(None, unschedulable(*([] if self._silent else ["still not schedulable"])))

    def _waits(self, attempt: FailedAttempt, judgement: Judgement, known: Inventory) -> bool:
        """Whether the pod will have devices on the node that it was promised without evicting anybody (else): once the
        claims of pods that are gone are given back."""
        table, nominations = attempt.snapshot.table, attempt.snapshot.nominations
        row = table.index.get(nominations.node_of(attempt.pod.uid) or NodeName(""))
        if known.consumers is None or row is None or attempt.evaluation.rejection is not None:
            return False
        status = attempt.evaluation.status_of(row)
        if status is None or status.plugin != self.name:
            return False
        return judgement.suppose(table, row, Otherwise(known.consumers.absent(table))) is None

    def note_search(self, state: CycleState, pod: PodInfo, findings: Findings) -> None:
        """Keep which claims of a pod of a group made nodes unavailable."""
        asked = state.read(_Asked)
        if asked is not None and asked.judgement is not None:
            snapshot: Snapshot = self._handle.snapshot
            unavailable = tuple(self._unavailable(snapshot.table, findings, asked.judgement))
            state.write(_Asked(asked.judgement, unavailable))

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
        """Take devices away from claims of the group and of its pods, if nobody else uses them and that might help.

        Where PreFilter has run for none of the pods, as there is no node or too few pods are left, upstream fails to
        read what it would have written, and says so. Of what upstream does not have nothing is said.

        Source: ``PodGroupPostFilter``, ``getPodGroupStateDataFromPodGroupCycleState``.
        """
        if attempt.group.spec.scheduling_constraints is not None and self._topology:
            return PodGroupPostFilterResult(unschedulable())
        own = self._places_groups or attempt.group.spec.coscheduling is not None
        asked = len(attempt.snapshot.table) > 0 and any(state.read(_Asked) for state in attempt.states.values())
        if not own and not asked:
            return PodGroupPostFilterResult(Status(Code.ERROR, ("not found",)))
        known = inventory.of(attempt.snapshot, self._features)
        looked: list[Looked] = []
        for pod in attempt.pods:
            state = attempt.states.get(pod.uid)
            found = None if state is None else state.read(_Asked)
            if found is not None:
                looked.append(Looked(pod.uid, found.judgement, found.unavailable))
        return preemption.for_group(attempt, looked, known, claims_of_groups=self._groups)

    def _unavailable(self, table: NodeTable, evaluation: Findings, judgement: Judgement) -> Iterator[HeldClaim]:
        """The claims that made a node unavailable which has room otherwise."""
        if not judgement.wish.held or evaluation.rejection is not None:
            return
        seen: set[str] = set()
        for row in evaluation.rows_with(NOT_AVAILABLE.code).tolist():
            status = evaluation.status_of(row)
            if status is None or status.plugin != self.name or status.reasons != NOT_AVAILABLE.reasons:
                continue
            for held in judgement.unavailable(table.nodes[row]):
                if held.record.key not in seen:
                    seen.add(held.record.key)
                    yield held

    # -- when there is one -----------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Find the very devices for the pod's own claims, with what this process counts with now."""
        if not pod.pod.spec.resource_claims and not self._resources_of(pod):
            return None
        snapshot: Snapshot = self._handle.snapshot
        known = inventory.of(snapshot, self._features)
        _, wish = self._read(pod, snapshot, known)
        if isinstance(wish, Status):
            return wish
        row = snapshot.table.index.get(node)
        if row is None:
            return Status(Code.ERROR, (f'node "{node}" not found',))
        asked = state.read(_Asked)
        kept = None if asked is None else asked.judgement
        judgement = Judgement(wish, known, self._limits) if kept is None else kept.adopt(wish)
        try:
            found = judgement.allocate(snapshot.table, row, self._beside_promised(pod, snapshot, row))
        except AllocationTimeout:
            return self._late(node)
        except InvalidPools:
            return INVALID_POOLS
        except AllocationError as error:
            return Status(Code.ERROR, (str(error),))
        if found is None:
            return Status(Code.ERROR, ("claim allocation not found for node",))
        self._count(state, pod, wish, known, found)
        return None

    def _beside_promised(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Otherwise | None:
        """That the pods have their devices which were promised the node; None where there are none."""
        if not self._preempts:
            return None
        ahead = snapshot.nominations.ahead_of(pod.uid, pod.priority, snapshot.table.names[row])
        return Otherwise(taken=self._promised(ahead, snapshot.table, row, frozenset())) if ahead else None

    def _count(self, state: CycleState, pod: PodInfo, wish: Wish, known: Inventory, found: Any) -> None:
        allocations, extended = found
        claims = [*wish.claims, *([extended.claim] if extended is not None else [])]
        taken = tuple(
            ReservedClaim(claim.metadata.uid, claim, msgspec.convert(allocation, Allocation))
            for claim, allocation in zip(claims, allocations, strict=True)
        )
        shared = [each for each in wish.held if each.promised]
        taken = (*(ReservedClaim(each.record.metadata.uid, each.record, each.allocation) for each in shared), *taken)
        for each in taken:
            known.assume(each.holder, pod.uid, each.allocation)
        charges = tuple(reserved.charge(each, known.index) for each in taken)
        decided = Reserved(taken, extended, tuple(each for each in charges if each.amounts))
        state.write(decided)
        if taken or wish.held:
            shown = (each.record for each in wish.held if not each.promised)
            held = [Held(each, pod_claims.serves(each, pod.pod, groups=self._groups)) for each in shown]
            consumers = pod_claims.consumers(pod.pod, self._group(pod.pod))
            now = self._clock.now_ms()
            errand = reserved.errand(pod.pod, decided, held, consumers, conditions=self._conditions, now_ms=now)
            state.shared[self.name] = errand.packed()

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        inventory.of(self._handle.snapshot, self._features).forget(pod.uid)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Whether Reserve has left claims to be written."""
        return None if self.name in state.shared else SKIP

    def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """As `pre_bind_together`, of one pod."""
        return self.pre_bind_together([(state, pod, node)])[0]

    def pre_bind_together(self, pods: Sequence[PlacedPod]) -> Sequence[Status | None]:
        """Write what Reserve decided, and look whether the devices are ready: Wait while they are not."""
        asked = {
            number: Errand.unpacked(state.shared[self.name])
            for number, (state, _, _) in enumerate(pods)
            if self.name in state.shared
        }
        if not asked:
            return [None] * len(pods)
        told = PreBindMetrics(pods[0][1].pod.spec.scheduler_name, self._features)
        errands = list(asked.values())
        found = binding.bind(errands, self._handle.cluster, self._clock.now_ms(), self._binding_timeout_s, told)
        answers = dict(zip(asked, found, strict=True))
        for number, answer in answers.items():
            if answer.looked:  # ready or not: kube-scheduler says it before it looks
                _, pod, node = pods[number]
                self._tell_of_wait(pod, node, asked[number])
        return [answers[number].status if number in answers else None for number in range(len(pods))]

    def _tell_of_wait(self, pod: PodInfo, node: NodeName, errand: Errand) -> None:
        """Once a decision, as far as this process knows: it is asked every second while a pod waits."""
        decision = pod.uid, errand.since_ms
        if decision in self._waits_told:
            return
        self._waits_told[decision] = None
        message = f"waiting for binding conditions for device on node {node}"
        self._handle.event(pod, "Normal", "BindingConditionsPending", message)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(lambda: self._handle.snapshot, self._features)

    # -- what the pod asks for -------------------------------------------------------------------------------------

    def _claims(self, pod: Pod, snapshot: Snapshot) -> PodClaims:
        """Asked several times in a row about one pod."""
        known = objects.of(snapshot).claims
        last = self._last
        if last is not None and last.pod is pod and last.claims is known and last.version == known.version:
            return last.found
        found = pod_claims.claims_of(pod, known.get, capital_pod=self._features.since(36), groups=self._groups)
        self._last = _Looked(pod, known, known.version, found)
        return found

    def _group(self, pod: Pod) -> PodGroup | None:
        """The pod's group, where its claims may be the group's."""
        if not self._groups or pod.spec.scheduling_group is None:
            return None
        groups: PodGroups = self._handle.snapshot.pod_groups
        return groups.objects.get(GroupKey(pod.group_key))

    def _read(self, pod: PodInfo, snapshot: Snapshot, known: Inventory) -> tuple[PodClaims, Wish | Status]:
        """The claims that the pod has, and what it wants of devices; or why it cannot be had."""
        named = self._claims(pod.pod, snapshot)
        return named, unresolvable(named.problem) if named.problem else self._wish(pod, named, known)

    def _part(self, pod: PodInfo, known: Inventory) -> Iterator[bytes]:
        named = self._claims(pod.pod, self._handle.snapshot)
        if named.problem:
            yield pod.uid.encode()
        for claim in named.claims:
            yield _told_apart(claim, known)
        earlier = known.extended_claim(pod.uid)
        if earlier is not None:
            yield earlier.uid.encode()

    def _wish(self, pod: PodInfo, named: PodClaims, known: Inventory) -> Wish | Status:
        """What the pod asks for, or why it cannot have it."""
        resources = self._resources_of(pod) if self._extends else ()
        extended = extended_resources.asked(resources, known.objects.class_behind)
        earlier = None if extended is None else known.extended_claim(pod.uid)
        held, waiting = [], []
        for claim in named.claims:
            allocation = claim.allocation or known.shared(claim)
            if allocation is not None:
                try:
                    held.append(HeldClaim(claim.record, allocation, promised=claim.allocation is None))
                except SelectorError as error:
                    return Status(Code.ERROR, (str(error),))
                continue
            if known.promised(claim):
                return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            refusal = self._refused(claim.record, known)
            if refusal is not None:
                return refusal
            waiting.append(claim.record)
        return Wish(pod.pod, waiting, held, extended, earlier is not None)

    def _refused(self, claim: ResourceClaim, known: Inventory) -> Status | None:
        """Whether all classes that a claim names are there."""
        for request in claim.spec.devices.requests:
            if request.first_available and not known.features.prioritized_list:
                return unresolvable(
                    f"resource claim {claim.key}, request {request.name}: has subrequests, but the DRAPrioritizedList "
                    "feature is disabled"
                )
            if request.exactly is None and not request.first_available:
                return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
            for name, class_name in _classes(request):
                if not class_name:
                    return Status(Code.ERROR, (f"request {name}: unsupported request type",))
                if known.objects.classes.get(class_name) is None:
                    return unresolvable(f"request {name}: device class {class_name} does not exist")
        return None

    def _judgement(self, pod: PodInfo, named: PodClaims, wish: Wish, known: Inventory) -> Judgement:
        """What is kept of the pod's class, as long as it is about the same objects."""
        held = tuple((id(each.record), id(each.allocation)) for each in wish.held)
        there = {each.record.metadata.uid for each in wish.held}
        waiting = tuple(claim.spec_key for claim in named.claims if claim.uid not in there)
        requests = None if wish.extended is None else (pod.requests_key, wish.extended, wish.earlier)
        priority = pod.priority if self._preempts else None
        key = id(known), waiting, held, requests, priority, known.objects.classes.version
        found = self._judgements.used(key)
        if found is None or found.erroneous:
            found = self._judgements[key] = Judgement(wish, known, self._limits)
        found.begin()
        return found

    def _asked(self, state: CycleState) -> Judgement:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        asked = state.read(_Asked)
        if asked is None or asked.judgement is None:
            raise PluginError("its PreFilter has not run; enable it at preFilter, too")
        return asked.judgement

    # -- time ------------------------------------------------------------------------------------------------------

    def _begin(self) -> Expired:
        if self._filter_timeout_s <= 0:
            return never
        return partial(self._over, self._clock.monotonic() + self._filter_timeout_s)

    def _hold(self, pod: PodInfo) -> Expired:
        """Of all questions about a pod in one attempt together, such as what would be if others were gone."""
        uid, end = self._held_up
        now = self._clock.monotonic()
        if uid != pod.uid or now > end + device_search.ATTEMPT_S:
            end = now + device_search.MOST_S
            self._held_up = pod.uid, end
        return partial(self._over, end)

    def _over(self, end: float) -> bool:
        return self._clock.monotonic() >= end

    def _late(self, node: NodeName) -> Status:
        words = "timed out trying to allocate devices"
        return Status(Code.ERROR, (f"node {node}: {words}",)) if self._features.since(36) else unresolvable(words)

    def _given_up(self, claim: ResourceClaim) -> bool:
        return self._conditions and held_claims.given_up(claim, self._clock.now_ms(), self._binding_timeout_s)


def _told_apart(claim: KnownClaim, known: Inventory) -> bytes:
    """Claims that have no devices are told apart by what they ask for, all others by what they are."""
    if claim.allocation is not None:
        return b"held " + claim.uid.encode()
    if known.promised(claim):
        return (b"shared " if known.shared(claim) is not None else b"promised ") + claim.uid.encode()
    return b"waiting " + claim.spec_key


def _open_rows(rows: Rows, open_: Callable[[], NDArray[np.bool_]] | None) -> list[int]:
    numbers = row_numbers(rows)
    found: list[int] = (numbers if open_ is None else numbers[open_()]).tolist()
    return found


def _classes(request: DeviceRequest) -> Iterator[tuple[str, str]]:
    """The classes that a request names, each with who does."""
    if request.exactly is not None:
        yield request.name, request.exactly.device_class_name
        return
    for each in request.first_available:
        yield f"{request.name}/{each.name}", each.device_class_name


_pre_enqueue: type[interface.PreEnqueuePlugin] = DynamicResources
_pre_filter: type[interface.PreFilterPlugin] = DynamicResources
_filter: type[interface.TableFilterPlugin] = DynamicResources
_post_filter: type[interface.PostFilterPlugin] = DynamicResources
_group_post_filter: type[interface.PodGroupPostFilterPlugin] = DynamicResources
_search: type[interface.SearchNoter] = DynamicResources
_score: type[interface.TableScorePlugin] = DynamicResources
_reserve: type[interface.ReservePlugin] = DynamicResources
_pre_bind: type[interface.PreBindPlugin] = DynamicResources
_pre_bind_together: type[interface.PreBindTogether] = DynamicResources
_pre_flight: type[interface.PreBindPreFlight] = DynamicResources
_enqueue: type[interface.EnqueueExtensions] = DynamicResources
