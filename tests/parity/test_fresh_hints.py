"""Thousands of things that happen while a pod waits: who is tried again, held against kube-scheduler's own queue."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from dsched.clock import ManualClock
from dsched.config import Features, feature_gates
from dsched.framework.interface import ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.judging import program
from dsched.model.pod import Pod, PodAffinityTerm
from dsched.plugins import profiles
from dsched.scheduler.hints import Hints
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from tests import seeds
from tests.judge_program import judge_program
from tests.parity.happenings import Cluster, Happening
from tests.unit.framework.frameworks import NAME, Handle, frameworks
from tests.versions import V34, V37

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_HINTS_SEED"
"""Environment variable: the seed of a run that is to be run again."""
CASES = 5000
EVENTS = 10
"""In one cluster."""
PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@dataclass(frozen=True, slots=True)
class Case:
    """Something that happened while a pod waited.

    Attributes:
        pod: as it is afterwards.
        plugins: those that were asked.
        mine, theirs: those that have the pod tried again, as dsched says and as kube-scheduler does.
    """

    event: ClusterEvent
    pod: Pod
    plugins: frozenset[str]
    mine: frozenset[str]
    theirs: frozenset[str]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


def helped(framework: Framework, plugins: list[str], pod: Pod, event: Happening) -> list[str]:
    """The plugins that would have the pod tried again, had they rejected it."""
    hints = Hints({NAME: framework})
    found = []
    for plugin in plugins:
        pending = PendingPods(ManualClock(), Backoff())
        queued = pending.add(PodInfo(pod), framework)
        pending.requeued(queued, framework, frozenset({plugin}))
        pending.placed(queued, QueueName.UNSCHEDULABLE)
        own = event.event.resource is Resource.POD
        if hints.helps(event.event, queued) if own else hints.helped(event.event, pending):
            found.append(plugin)
    return sorted(found)


def cases(path: Path, chance: random.Random, features: Features) -> Iterator[Case]:
    """What happens in one cluster after the other."""
    with program.running(path) as asked:
        while True:
            cluster = Cluster(chance)
            framework = frameworks(PLAIN, Handle(cluster.snapshot), features)[NAME]
            plugins = [plugin.name for plugin in framework.at("filter")]
            asked.tell({"begin": {}})
            for line in cluster.beginning:
                asked.tell(line)
            ours = []
            for number in range(EVENTS):
                pod, happened = cluster.pod, cluster.next()
                for line in happened.before:
                    asked.tell(line)
                asked.tell({"hint": {"name": str(number), "pod": pod, "plugins": plugins, **happened.line}})
                ours.append((happened.event, cluster.pod, helped(framework, plugins, cluster.pod, happened)))
            for (event, pod, mine), answer in zip(ours, asked.answers(EVENTS), strict=True):
                yield Case(event, pod, frozenset(plugins), frozenset(mine), frozenset(answer["helped"]))


def listed(plugin: str, case: Case, features: Features) -> bool:
    """Whether it is listed in docs/architecture.md, "Differs from kube-scheduler", that dsched has the pod tried again
    where kube-scheduler does not."""
    if plugin not in case.mine:
        return False
    event = case.event
    if plugin == "NodeVolumeLimits":
        return event.resource is Resource.CSI_NODE and features.since(37)
    if event.old is not None and event.new is None and event.resource is Resource.ASSIGNED_POD:
        promised = not event.old.node_name
        if promised and plugin in ("InterPodAffinity", "PodTopologySpread") and not features.since(36):
            return True
    if plugin != "InterPodAffinity":
        return False
    if event.resource is Resource.POD:
        return not features.since(36)
    near, apart = required(case.pod, "pod_affinity"), required(case.pod, "pod_anti_affinity")
    repelled = event.new is None and required(event.old, "pod_anti_affinity")
    return bool(near) or (len(apart) > 1 and not features.since(37)) or (bool(repelled) and not features.since(36))


def required(pod: Pod, side: str) -> list[PodAffinityTerm]:
    """The terms of a pod's affinity or anti-affinity that have to hold."""
    of_side = getattr(pod.spec.affinity, side) if pod.spec.affinity else None
    return of_side.required_during_scheduling_ignored_during_execution if of_side else []


@pytest.mark.parametrize("features", [V34, V37], ids=["1.34", "1.37"])
def test_kube_scheduler_would_have_tried_the_same_pods_again(
    features: Features, capsys: pytest.CaptureFixture[str]
) -> None:
    path = judge_program(str(features.version))
    seed = seeds.seed(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed} for {features.version}")
    profiles.emulate(features)
    differ: list[tuple[str, Case]] = []
    tried: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for case in islice(cases(path, random.Random(seed), features), CASES):
        tried.update(case.mine & case.theirs)
        for plugin in sorted(case.mine ^ case.theirs):
            if listed(plugin, case, features):
                known[plugin] += 1
            else:
                differ.append((plugin, case))
    told = [f"{plugin}, {case.event.label}: {case}" for plugin, case in differ]
    assert told == [], f"{SEED}={seed}"
    assert known.total() < CASES / 20
    assert len(tried) >= 10, tried
    assert tried.total() > CASES / 2
