"""Plugins that mean harm: they write into what they are given, raise and answer oddly."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsched.engine.evaluation import evaluate
from dsched.framework.interface import Code, Scope, Status, Verdict
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from tests.attacks.attack import Stand, attack
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import framework_of

NODES = [make_node(f"n{number}") for number in range(5)]
POD = PodInfo(make_pod("shop/web", "100m"))


class Wordless(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


class Endless(Exception):
    def __str__(self) -> str:
        return "x" * 10**7


RAISED: Sequence[Callable[[], BaseException]] = (
    lambda: SystemExit(3),
    GeneratorExit,
    CancelledError,
    RecursionError,
    MemoryError,
    StopIteration,
    Wordless,
    Endless,
)
COLUMNS = ("pod_count", "allowed_pods", "unschedulable", "taint_set", "serials", "name_hashes")
WRITES: Sequence[Callable[[NodeTable], Any]] = (
    *(lambda table, name=name: getattr(table, name).fill(1) for name in COLUMNS),
    *(lambda table, name=name: getattr(table, name).sort() for name in COLUMNS),
    *(lambda table, name=name: setattr(table, name, None) for name in (*COLUMNS, "resources")),
    lambda table: table.allocatable("cpu").fill(0),
    lambda table: table.requested("cpu").fill(0),
    lambda table: table.nonzero_requested("memory").fill(0),
    lambda table: table.amounts("cpu").allocatable.__setitem__(0, 0),  # type: ignore[attr-defined]
    lambda table: table.amounts("memory").requested.__setitem__(0, 7),  # type: ignore[attr-defined]
    lambda table: table.amounts("cpu").nonzero_requested.__setitem__(0, 7),  # type: ignore[attr-defined]
    lambda table: table.index.clear(),  # type: ignore[attr-defined]
    lambda table: table.index.__setitem__("n1", 0),  # type: ignore[attr-defined]
    lambda table: table.resources.clear(),  # type: ignore[attr-defined]
    lambda table: POD.demand.requests.clear(),  # type: ignore[attr-defined]
    lambda table: setattr(POD.demand, "nonzero_cpu", 0),
)
ANSWERS: Sequence[Any] = (
    7,
    "text",
    float("nan"),
    2**70,
    np.zeros(3),
    Verdict([0] * 5, ()),  # type: ignore[arg-type]
    Verdict(np.zeros((5, 5), dtype=np.int32), ()),
    Verdict(np.full(5, np.nan), ()),
    Verdict(np.full(5, 2**63, dtype=np.uint64), (Status(Code.UNSCHEDULABLE),)),
    Verdict(np.array([None] * 5), ()),
    Verdict(np.ones(5, dtype=np.int32), ("no status",)),  # type: ignore[arg-type]
)


def _hostile(act: Callable[[NodeTable], Any]) -> type[Any]:
    class Hostile:
        name = "Hostile"
        filter_scope = Scope.USAGE

        def __init__(self, args: Any, handle: Any) -> None: ...

        def filter_table(self, state: Any, pod: PodInfo, table: NodeTable, rows: Any) -> Any:
            return act(table)

    return Hostile


def _facts(table: NodeTable) -> list[Any]:
    found: list[Any] = [list(table.names), dict(table.index), dict(table.resources)]
    found += [getattr(table, name).tolist() for name in COLUMNS]
    for name in table.resources:
        amounts = table.amounts(name)
        found += [list(each)[: len(table)] for each in (amounts.allocatable, amounts.requested)]
        found += [table.allocatable(name).tolist(), table.nonzero_requested(name).tolist()]
    return found


@attack(
    "a plugin that writes into the node table or the pod, raises anything, or answers with anything",
    sees="its pod fails with the plugin's name; the leader's table and the decisions about other pods stay as they are",
)
def plugin_out_of_contract(stand: Stand) -> None:
    def raises(table: NodeTable) -> Any:
        raise stand.rng.choice(RAISED)()

    def answers(table: NodeTable) -> Any:
        return stand.rng.choice(ANSWERS)

    for act in [*WRITES, *[raises] * stand.rounds, *[answers] * stand.rounds]:
        snapshot = make_snapshot(NODES)
        before = _facts(snapshot.table)

        failure = evaluate(framework_of(_hostile(act)), POD, snapshot).failure

        assert failure is not None
        assert failure.plugin == "Hostile"
        assert len(failure.message) < 10_000
        assert _facts(snapshot.table) == before == _facts(make_snapshot(NODES).table)
        assert POD.demand.requests == PodInfo(make_pod("shop/other", "100m")).demand.requests
        assert evaluate(framework_of(_hostile(_nothing)), POD, snapshot).failure is None


def _nothing(table: NodeTable) -> Verdict:
    return Verdict(np.zeros(len(table), dtype=np.int32), ())
