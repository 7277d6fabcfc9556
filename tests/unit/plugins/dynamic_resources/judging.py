"""Pods with claims, decided on by the default profile over objects that a test gives."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from dsched import config
from dsched.clock import Clock
from dsched.config import Features, feature_gates
from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import PostFilterResult, Status
from dsched.framework.long_search import LongSearch, Searches
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import NAME, Handle

Json = dict[str, Any]

NODES = ("n1", "n2", "n3")


def features(minor: int = 37, **gates: bool) -> Features:
    return feature_gates.features(feature_gates.parse_version(f"1.{minor}"), gates)


def put(snapshot: Snapshot, *objects: Json) -> None:
    """Take in objects as a cluster holds them."""
    for each in objects:
        meta = each["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        snapshot.put(each["kind"], key, each)


def cluster(*objects: Json, nodes: Iterable[Any] = NODES) -> Snapshot:
    snapshot = make_snapshot([make_node(each) if isinstance(each, str) else each for each in nodes])
    put(snapshot, *objects)
    return snapshot


def claiming(*names: str, name: str = "web", **fields: Any) -> Pod:
    """A pod with these claims."""
    claims = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(names)]
    return make_pod(f"default/{name}", spec={"resourceClaims": claims}, **fields)


def generated(pod_name: str, claim: Json) -> tuple[Pod, Json]:
    """A pod of a template, and the claim that was made for it."""
    pod = make_pod(
        f"default/{pod_name}",
        spec={"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim["metadata"]["name"]}]},
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": pod.uid, "controller": True}
    return pod, {**claim, "metadata": {**claim["metadata"], "ownerReferences": [owner]}}


def framework(
    snapshot: Snapshot,
    minor: int = 37,
    gates: Mapping[str, bool] = MappingProxyType({}),
    searches: Searches | None = None,
    clock: Clock | None = None,
) -> Framework:
    configured = config.default(features(minor, **gates))
    handle = Handle(snapshot)
    handle.searches, handle.clock = searches, clock
    return profiles.frameworks(configured, registry.intree(), handle)[NAME]


class InTurn:
    """Searches that are done when a test says so, in this process."""

    def __init__(self) -> None:
        self.asked: list[LongSearch] = []

    def ask(self, search: LongSearch, uid: PodUid) -> None:
        if search not in self.asked:
            self.asked.append(search)

    def do(self, between: Callable[[], object] = lambda: None) -> int:
        """Do what was asked for; how many searches that were."""
        asked, self.asked = self.asked, []
        for search in asked:
            search.begin()
            answer = search.work()
            between()
            search.done(answer)
        return len(asked)


def plugin(of: Framework) -> DynamicResources:
    found = of.plugin(DynamicResources.name)
    assert isinstance(found, DynamicResources)
    return found


def judged(of: Framework, pod: Pod, snapshot: Snapshot) -> Evaluation:
    evaluation = evaluate(of, PodInfo(pod), snapshot)
    assert evaluation.failure is None, evaluation.failure
    return evaluation


def reasons(evaluation: Evaluation, snapshot: Snapshot) -> dict[str, str]:
    """Why each node was rejected that was."""
    names = snapshot.table.names
    statuses = ((name, evaluation.status_of(row)) for row, name in enumerate(names))
    return {name: status.message for name, status in statuses if status is not None}


def post_filtered(of: Framework, pod: Pod, snapshot: Snapshot) -> PostFilterResult:
    evaluation = judged(of, pod, snapshot)
    diagnosis = diagnose(evaluation, len(snapshot.table))
    attempt = FailedAttempt(of, evaluation.state, PodInfo(pod), snapshot, evaluation, diagnosis)
    result = of.run_post_filter(attempt)
    assert result is not None
    return result


def reserve(of: Framework, pod: Pod, node: str) -> tuple[CycleState, Status | None]:
    """What Reserve of the plugin leaves, and says."""
    state = CycleState()
    return state, plugin(of).reserve(state, PodInfo(pod), NodeName(node))
