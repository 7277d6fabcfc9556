"""NodeResourcesFit."""

from typing import Any

import pytest

from dsched.config import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy, ShapePoint
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.plugins.dynamic_resources import objects
from dsched.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import make_container, make_node, make_pod, make_snapshot, make_table
from tests.devices import asking, make_claim, make_class, make_slice, result
from tests.unit.framework.frameworks import Handle
from tests.unit.plugins.asking import filtered, reasons, scored
from tests.unit.plugins.dynamic_resources import judging as devices
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
GPU = "nvidia.com/gpu"


def fit(
    strategy: str = "LeastAllocated",
    shape: tuple[tuple[int, int], ...] = (),
    ignored: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    **weights: int,
) -> NodeResourcesFit:
    resources = tuple(ResourceSpec(name, weight) for name, weight in (weights or {"cpu": 1, "memory": 1}).items())
    scoring = ScoringStrategy(strategy, resources, tuple(ShapePoint(*point) for point in shape))
    return NodeResourcesFit(NodeResourcesFitArgs(ignored, groups, scoring), NO_HANDLE)


class TestFilter:
    TABLE = make_table(
        [make_node("n1", "4", "8Gi", 2), make_node("n2", "2", "8Gi", 1, allocatable={GPU: 2})],
        [make_pod("shop/a", "1", "1Gi", node="n1"), make_pod("shop/b", "1", "1Gi", node="n2", requests={GPU: 1})],
    )

    def test_reasons_and_codes(self) -> None:
        statuses = filtered(fit(), make_pod(cpu="3500m"), self.TABLE)
        # n1: 3500 > 4000 - 1000; n2: 3500 > 2000 in all, and 1 + 1 > 1 pods
        assert [status and (status.code, status.reasons) for status in statuses] == [
            (Code.UNSCHEDULABLE, ("Insufficient cpu",)),
            (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Too many pods", "Insufficient cpu")),
        ]

    def test_extended_resources_can_be_ignored_by_name_and_by_group(self) -> None:
        pod = make_pod(requests={GPU: 2})
        assert reasons(fit(), pod, self.TABLE) == [f"Insufficient {GPU}", f"Too many pods, Insufficient {GPU}"]
        assert reasons(fit(ignored=(GPU,)), pod, self.TABLE) == ["", "Too many pods"]
        assert reasons(fit(groups=("nvidia.com",)), pod, self.TABLE) == ["", "Too many pods"]
        assert reasons(fit(groups=("nvidia",)), pod, self.TABLE)[0] == f"Insufficient {GPU}"

    def test_native_resources_cannot_be_ignored(self) -> None:
        plugin = fit(ignored=("cpu", "hugepages-2Mi"), groups=("cpu",))
        pod = make_pod(cpu="9", requests={"hugepages-2Mi": "2Mi"})
        assert reasons(plugin, pod, self.TABLE)[0] == "Insufficient cpu, Insufficient hugepages-2Mi"

    def test_filter_without_pre_filter_is_an_error(self) -> None:
        with pytest.raises(PluginError, match="PreFilter has not run"):
            fit().filter_table(CycleState(), PodInfo(make_pod()), self.TABLE, self.TABLE.all_rows)


class TestScore:
    NODE = make_node("n1", "4", "10000", allocatable={GPU: 4, "ephemeral-storage": 1000})

    def score(self, plugin: NodeResourcesFit, pod: Pod, *running: Pod) -> int:
        return scored(plugin, pod, make_table([self.NODE], running))[0]

    def test_least_allocated(self) -> None:
        # cpu (4000 - 3000) * 100 / 4000 = 25, memory (10000 - 5000) * 100 / 10000 = 50; 75 / 2
        running = make_pod("shop/a", "2", 3000, node="n1")
        assert self.score(fit(), make_pod(cpu="1", memory=2000), running) == 37

    def test_most_allocated(self) -> None:
        # cpu 3000 * 100 / 4000 = 75, memory 5000 * 100 / 10000 = 50; (75 * 3 + 50) / 4
        running = make_pod("shop/a", "2", 3000, node="n1")
        assert self.score(fit("MostAllocated", cpu=3, memory=1), make_pod(cpu="1", memory=2000), running) == 68

    def test_requested_to_capacity_ratio(self) -> None:
        # cpu 75 % -> 75, memory 50 % -> 50; 62.5 rounded up
        plugin = fit("RequestedToCapacityRatio", shape=((0, 0), (100, 10)))
        running = make_pod("shop/a", "2", 3000, node="n1")
        assert self.score(plugin, make_pod(cpu="1", memory=2000), running) == 63

    def test_pods_without_requests_count_with_defaults_on_both_sides(self) -> None:
        # cpu 100 + 100 of 4000: 95
        assert self.score(fit(cpu=1), make_pod(), make_pod("shop/a", node="n1")) == 95
        # an explicit zero stays zero
        assert self.score(fit(cpu=1), make_pod(cpu=0), make_pod("shop/a", 0, node="n1")) == 100

    def test_other_resources_have_no_default(self) -> None:
        # (1000 - 300 - 200) * 100 / 1000
        running = make_pod("shop/a", node="n1", requests={"ephemeral-storage": 300})
        plugin = fit(**{"ephemeral-storage": 1})
        assert self.score(plugin, make_pod(requests={"ephemeral-storage": 200}), running) == 50
        assert self.score(plugin, make_pod(), running) == 70

    def test_extended_resources_count_only_for_pods_that_request_them(self) -> None:
        plugin = fit(cpu=1, **{GPU: 1})
        # gpu (4 - 3) * 100 / 4 = 25, cpu 4000 of 4000 = 0: 25 / 2
        running = make_pod("shop/a", "3", node="n1", requests={GPU: 2})
        assert self.score(plugin, make_pod(cpu="1", requests={GPU: 1}), running) == 12
        assert self.score(plugin, make_pod(cpu="1"), running) == 0

    def test_nothing_that_counts_scores_zero(self) -> None:
        assert self.score(fit(**{GPU: 1}), make_pod(cpu="1")) == 0

    def test_pod_level_requests_of_the_newcomer_are_not_looked_at(self) -> None:
        newcomer = make_pod(spec={"resources": {"requests": {"cpu": "4"}}})
        # 100 of 4000
        assert self.score(fit(cpu=1), newcomer) == 97
        running = make_pod("shop/a", node="n1", spec={"resources": {"requests": {"cpu": "3"}}})
        # 3000 + 100 of 4000
        assert self.score(fit(cpu=1), newcomer, running) == 22

    def test_a_resource_listed_twice_counts_twice(self) -> None:
        resources = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1), ResourceSpec("cpu", 2))
        plugin = NodeResourcesFit(NodeResourcesFitArgs((), (), ScoringStrategy("MostAllocated", resources)), NO_HANDLE)
        # cpu 50, memory 20: (50 + 20 + 2 * 50) / 4 = 42.5
        assert self.score(plugin, make_pod(cpu="2", memory=2000)) == 42

    def test_it_does_without_pre_score(self) -> None:
        table = make_table([self.NODE])
        assert fit(cpu=1).score_table(CycleState(), PodInfo(make_pod()), table, table.all_rows).tolist() == [97]

    def test_an_unknown_strategy(self) -> None:
        with pytest.raises(PluginError, match="scoring strategy Random is not supported"):
            fit("Random")


class TestHints:
    POD = make_pod(cpu="2")

    def test_a_pod_that_leaves_a_node_helps(self) -> None:
        assert queues(fit(), self.POD, Resource.ASSIGNED_POD, Action.DELETE, old=make_pod("shop/a", node="n1"))
        assert queues(fit(), self.POD, Resource.POD, Action.DELETE, old=make_pod("shop/a", nominated="n1"))
        assert not queues(fit(), self.POD, Resource.POD, Action.DELETE, old=make_pod("shop/a"))

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ({"cpu": "2"}, {"cpu": "1"}, True),
            ({"cpu": "1"}, {"cpu": "2"}, False),
            ({"cpu": "1", "memory": "2Gi"}, {"cpu": "1", "memory": "1Gi"}, False),  # not what the pod needs
        ],
    )
    def test_a_pod_that_is_scaled_down_helps(
        self, before: dict[str, str], after: dict[str, str], expected: bool
    ) -> None:
        def running(requests: dict[str, str]) -> Pod:
            held = [{"name": "app", "resources": {"requests": requests}}]
            containers = [make_container("app", requests=requests)]
            return make_pod("shop/a", containers=containers, node="n1", status={"containerStatuses": held})

        args = (Resource.ASSIGNED_POD, Action.UPDATE, running(before), running(after))
        assert queues(fit(), self.POD, *args) is expected

    def test_the_pod_itself_scaled_down_helps(self) -> None:
        assert queues(fit(), self.POD, Resource.POD, Action.UPDATE, make_pod(cpu="3"), self.POD)
        assert not queues(fit(), self.POD, Resource.POD, Action.UPDATE, self.POD, self.POD)
        other = make_pod("shop/other", cpu="1")
        assert not queues(fit(), self.POD, Resource.POD, Action.UPDATE, make_pod("shop/other", cpu="3"), other)

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, make_node(cpu="2"), True),
            (None, make_node(cpu="1"), False),
            (None, make_node(pods=0), False),
            (make_node(cpu="1"), make_node(cpu="2"), True),
            (make_node(cpu="2"), make_node(cpu="2"), False),
            (make_node(cpu="4"), make_node(cpu="2"), False),
            (make_node(pods=5), make_node(pods=6), True),
            (make_node(memory="1Gi"), make_node(memory="2Gi"), False),
        ],
    )
    def test_a_node_that_came_or_grew_helps(self, old: Any, new: Any, expected: bool) -> None:
        action = Action.ADD if old is None else Action.UPDATE
        assert queues(fit(), self.POD, Resource.NODE, action, old, new) is expected


class TestDevices:
    """A DeviceClass stands for a resource: nodes that have none of it are left to DynamicResources."""

    POD = make_pod(requests={GPU: 1})
    NODES = (make_node("n1"), make_node("n2", allocatable={GPU: 0}), make_node("n3", allocatable={GPU: 1}))
    CLASS = make_class("gpu", extendedResourceName=GPU)

    def fit(self, snapshot: Snapshot, **weights: int) -> NodeResourcesFit:
        scoring = ScoringStrategy("MostAllocated", tuple(ResourceSpec(*each) for each in weights.items()), ())
        args = NodeResourcesFitArgs((), (), scoring)
        return NodeResourcesFit(args, Handle(snapshot), features=devices.features())

    def refused(self, found: NodeResourcesFit, snapshot: Snapshot) -> list[str]:
        state, info = CycleState(), PodInfo(self.POD)
        found.pre_filter(state, info, snapshot)
        verdict = found.filter_table(state, info, snapshot.table, snapshot.table.all_rows)
        few = found.filter_few(state, info, snapshot.table, range(len(snapshot.table)))
        assert [status is None for status in few] == (verdict.index == 0).tolist()
        return [name for name, number in zip(snapshot.table.names, verdict.index, strict=True) if number]

    def test_only_nodes_that_have_some_are_counted(self) -> None:
        busy = make_pod("shop/a", requests={GPU: 1}, node="n3")
        snapshot = make_snapshot(self.NODES, [busy])
        assert self.refused(self.fit(snapshot), snapshot) == ["n1", "n2", "n3"]
        devices.put(snapshot, self.CLASS)
        assert self.refused(self.fit(snapshot), snapshot) == ["n3"]

    def test_such_pods_are_another_class(self) -> None:
        snapshot = make_snapshot(self.NODES)
        found = self.fit(snapshot)
        assert found.class_part(PodInfo(self.POD)) == b""
        devices.put(snapshot, self.CLASS)
        assert found.class_part(PodInfo(self.POD)) == GPU.encode()
        assert found.class_part(PodInfo(make_pod())) == b""

    def test_what_was_said_to_another_pod_does_not_hold_under_other_classes(self) -> None:
        snapshot = make_snapshot(self.NODES)
        found, other = self.fit(snapshot), PodInfo(make_pod("shop/other", requests={GPU: 1}))
        assert found.alike(PodInfo(self.POD), other)
        devices.put(snapshot, self.CLASS)
        assert not found.alike(PodInfo(self.POD), other)
        assert found.alike(PodInfo(make_pod("shop/a")), PodInfo(make_pod("shop/b")))

    def test_devices_are_scored_like_what_a_node_has(self) -> None:
        taken = make_claim("default/held", asking(), allocated=[result("d0")])
        snapshot = make_snapshot(self.NODES)
        devices.put(snapshot, self.CLASS, make_slice("n1", ["d0", "d1", "d2", "d3"]), taken)
        found = self.fit(snapshot, **{GPU: 1})
        state, info = CycleState(), PodInfo(self.POD)
        scores = found.score_table(state, info, snapshot.table, snapshot.table.all_rows).tolist()
        # n1: (1 + 1) of 4 devices; n2 has none; n3: 1 of 1
        assert scores == [50, 0, 100]
        assert found.score_few(state, info, snapshot.table, [2, 0]) == [100, 50]

    def test_classes_that_come_wake_pods(self) -> None:
        snapshot = make_snapshot(self.NODES)
        found, other = self.fit(snapshot), make_class("gpu", extendedResourceName="example.com/other")
        assert queues(found, self.POD, Resource.DEVICE_CLASS, Action.ADD, None, self.CLASS)
        assert not queues(found, self.POD, Resource.DEVICE_CLASS, Action.ADD, None, other)
        assert queues(found, self.POD, Resource.DEVICE_CLASS, Action.UPDATE, other, self.CLASS)
        assert not queues(found, self.POD, Resource.DEVICE_CLASS, Action.UPDATE, self.CLASS, self.CLASS)
        assert queues(found, make_pod(requests={GPU: 0}), Resource.DEVICE_CLASS, Action.ADD, None, self.CLASS)
        implicit = make_pod(requests={f"{objects.IMPLICIT_PREFIX}gpu": 1})
        assert queues(found, implicit, Resource.DEVICE_CLASS, Action.ADD, None, make_class("gpu"))

    def test_a_node_without_the_resource_may_help(self) -> None:
        snapshot = make_snapshot(self.NODES)
        found = self.fit(snapshot)
        assert not queues(found, self.POD, Resource.NODE, Action.ADD, None, make_node("n4"))
        devices.put(snapshot, self.CLASS)
        assert queues(found, self.POD, Resource.NODE, Action.ADD, None, make_node("n4"))

    def test_such_a_node_helps_once_its_amounts_have_changed(self) -> None:
        snapshot = make_snapshot(self.NODES)
        devices.put(snapshot, self.CLASS)
        found, before = self.fit(snapshot), make_node("n4", "4")
        assert queues(found, self.POD, Resource.NODE, Action.UPDATE, before, make_node("n4", "3"))
        assert not queues(
            found, self.POD, Resource.NODE, Action.UPDATE, before, make_node("n4", "4", labels={"a": "b"})
        )
