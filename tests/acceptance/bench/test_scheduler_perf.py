"""Every test of upstream's scheduler_perf, and of our own, in its smallest size. Nothing is said about speed."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from dsched.bench import depths, session, workloads
from dsched.bench.results import PASSED
from dsched.bench.session import Running, Shape
from dsched.bench.suite import Suite
from dsched.bench.workloads import Case
from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.manifests import kinds
from dsched.state import keys

OWN = Path(__file__).parents[3] / "benchmarks" / "scheduler_perf"
SHARED = Path(__file__).parents[4] / "shared" / "scheduler_perf_v1.37"
PATIENCE_S = 120.0

Systems = Callable[[Shape], AbstractContextManager[Running]]


def smallest(folder: Path) -> list[Case]:
    """The first workload of each test that is run as an integration test, where dsched has what it needs."""
    first: dict[str, Case] = {}
    for case in workloads.choose(workloads.read(folder), (), "integration-test"):
        if case.needs:
            continue
        first.setdefault(case.test, case)
    return list(first.values())


MISSING = pytest.param(
    None, marks=pytest.mark.skip(reason="../shared/scheduler_perf_v1.37 is not there"), id="upstream"
)
CASES = [*smallest(OWN), *(smallest(SHARED) if SHARED.is_dir() else [MISSING])]


class OneSystem:
    """A system that is emptied after each workload and used for the next that wants the same; one that failed is not
    used again."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._there: tuple[Shape, Running] | None = None

    @contextmanager
    def __call__(self, shape: Shape) -> Iterator[Running]:
        there, self._there = self._there, None
        if there is None or there[0] != shape:
            self._stack.close()
            running = self._stack.enter_context(session.system(shape))
        else:
            running = there[1]
        yield running
        empty(running)
        self._there = shape, running


def empty(running: Running) -> None:
    """Delete all objects, and wait until the scheduler holds nothing of them."""
    store = running.store
    applier, objects = Applier(store), Objects(store)
    for kind in reversed(kinds.ALL):
        applier.delete(kind, [key.decode() for key in store.redis.hkeys(store.key(cluster_keys.objects(kind).name))])
    newest = StandaloneCluster(store).newest_version()

    def settled() -> bool:
        known = int(store.redis.hget(store.key(keys.INTAKE.name), "version") or 0)
        return known >= newest and not any(depths.look(store).values()) and not store.names(keys.NODE.name)

    deadline = time.monotonic() + PATIENCE_S
    while not settled():
        assert time.monotonic() < deadline, f"still there: {depths.look(store)}, {store.names(keys.NODE.name)[:3]}"
        time.sleep(0.05)
    assert not objects.all_of(kinds.POD)


@pytest.fixture(scope="module")
def systems() -> Iterator[Systems]:
    with ExitStack() as stack:
        yield OneSystem(stack)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_workload_comes_to_its_end(case: Case, systems: Systems) -> None:
    suite = Suite(Shape(evaluators=1, binders=1), timeout_s=PATIENCE_S, systems=systems)

    result = suite.run(case)

    assert result.status == PASSED, result.message
    assert all(measured.pods > 0 for measured in result.measured)
    assert result.attempts["scheduled"] >= sum(measured.pods for measured in result.measured)
    assert result.phase_seconds["evaluate"] > 0


def test_a_workload_that_cannot_end_fails_and_says_how_far_it_came(systems: Systems, tmp_path: Path) -> None:
    path = tmp_path / workloads.FILE
    path.write_text(
        """
- name: TooMany
  workloadTemplate:
  - {opcode: createNodes, count: 1}
  - {opcode: createPods, count: 41, collectMetrics: true}
  workloads: [{name: OneNode}]
"""
    )
    (case,) = workloads.read(path)

    result = Suite(Shape(evaluators=1, binders=1), timeout_s=3, systems=systems).run(case)

    assert result.status == "failed"
    assert re.search(r"operation 1: only \d+ of 41 pods are bound after 3 s", result.message)
