"""Reading scheduler_perf's files: their own, and small ones that go wrong."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dsched.bench import operations, workloads
from dsched.bench.gates import emulated
from dsched.bench.making import Maker
from dsched.bench.operations import CreatePods, Unsupported
from dsched.bench.templates import Template
from dsched.bench.workloads import GROUPS
from dsched.errors import ConfigError
from dsched.model.queues import LABEL, Queue
from dsched.scheduler.quota.tree import Tree

SHARED = Path(__file__).parents[4] / "shared" / "scheduler_perf_v1.37"
OLDER = SHARED.with_name("scheduler_perf")
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"../shared/{SHARED.name} is not there")
needs_older = pytest.mark.skipif(not OLDER.is_dir(), reason="../shared/scheduler_perf is not there")

FILE = """
- name: Small
  defaultPodTemplatePath: pod.yaml
  featureGates: {A: true}
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - opcode: createPodSets
    count: 2
    namespacePrefix: set
    createPodsOp: {opcode: createPods, countParam: $pods}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  workloads:
  - {name: One, labels: [short, performance], threshold: 12.5, params: {nodes: 3, pods: 4}, featureGates: {B: false}}
  - {name: Two/b, labels: [performance], params: {nodes: 3}}
"""


def cases(tmp_path: Path, text: str = FILE) -> list[workloads.Case]:
    (tmp_path / workloads.FILE).write_text(text)
    return workloads.read(tmp_path)


def one(tmp_path: Path, operation: str) -> list[operations.Operation]:
    """The operations of a workload that has this one."""
    text = f"- name: T\n  workloadTemplate:\n  - {operation}\n  workloads: [{{name: W, params: {{n: 2}}}}]\n"
    return cases(tmp_path, text)[0].operations()


def test_a_workload_has_what_stands_in_the_file_for_it_and_its_test(tmp_path: Path) -> None:
    first, second = cases(tmp_path)

    assert (first.name, second.name) == ("Small/One", "Small/Two/b")
    assert first.workload.threshold == 12.5
    assert first.feature_gates == {"A": True, "B": False}
    assert first.path("pod.yaml") == tmp_path / "pod.yaml"


def test_parameters_are_put_in_and_sets_of_pods_taken_apart(tmp_path: Path) -> None:
    nodes, *pods = cases(tmp_path)[0].operations()

    assert isinstance(nodes, operations.CreateNodes)
    assert nodes.count == 3
    found = [(each.namespace, each.count, each.collect_metrics) for each in pods if isinstance(each, CreatePods)]
    assert found == [("set-0", 4, False), ("set-1", 4, False), (None, 4, True)]


def test_a_parameter_that_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Small/Two/b: operation 1: there is no parameter \$pods; there are nodes"):
        cases(tmp_path)[1].operations()


@pytest.mark.parametrize(
    ("names", "labels", "chosen"),
    [
        ((), "", ["Small/One", "Small/Two/b"]),
        ((), "short", ["Small/One"]),
        ((), "performance,-short", ["Small/Two/b"]),
        ((), "performance, +short", ["Small/One"]),
        (("Small/Two/b",), "", ["Small/Two/b"]),
        (("Small",), "", ["Small/One", "Small/Two/b"]),
        (("Small",), "gpu", []),
    ],
)
def test_workloads_are_chosen_by_name_and_labels(
    names: tuple[str, ...], labels: str, chosen: list[str], tmp_path: Path
) -> None:
    assert [case.name for case in workloads.choose(cases(tmp_path), names, labels)] == chosen


def test_a_name_that_fits_nothing_tells_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no workload Small/Three; there are Small/One, Small/Two/b"):
        workloads.choose(cases(tmp_path), ["Small/Three"], "")


@pytest.mark.parametrize(
    ("opcode", "needs"),
    [
        ("createResourceDriver", "a test driver of devices"),
        ("waitForPodGroups", "pod groups"),
        ("startCollectingProfile", "profiles of a Go process"),
        ("danceAround", "an operation that is not known"),
    ],
)
def test_an_operation_that_is_not_built_is_told_by_what_it_needs(opcode: str, needs: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported) as caught:
        one(tmp_path, f"{{opcode: {opcode}, namespace: x}}")

    assert str(caught.value) == f"T/W needs {needs} ({opcode}), which dsched does not have"


@pytest.mark.parametrize(
    ("gates", "needs"),
    [
        ("{CompositePodGroup: true, A: true}", {"pod groups": ("CompositePodGroup",)}),
        ("{GenericWorkload: true, TopologyAwareWorkloadScheduling: true}", {}),
        ("{DRADerivedAttributes: true}", {"the feature DRADerivedAttributes": ("DRADerivedAttributes",)}),
        ("{InPlacePodVerticalScalingSchedulerPreemption: true}", {}),
        ("{GenericWorkload: false, DynamicResourceAllocation: true}", {}),
    ],
)
def test_a_gate_of_what_there_is_not_is_a_need(gates: str, needs: dict[str, object], tmp_path: Path) -> None:
    first, _ = cases(tmp_path, FILE.replace("featureGates: {A: true}", f"featureGates: {gates}"))

    assert first.needs == needs


def test_all_that_a_workload_needs_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "group.yaml").write_text("kind: CompositePodGroup\n")
    sets = "{opcode: createPodSets, count: 1, namespacePrefix: s, createPodsOp: {opcode: waitForPodGroups}}"

    with pytest.raises(Unsupported) as caught:
        one(
            tmp_path,
            f"{{opcode: createAny, templatePath: group.yaml}}\n  - {{opcode: createResourceDriver}}\n  - {sets}",
        )

    driver, groups = (
        "a test driver of devices (createResourceDriver)",
        "pod groups (CompositePodGroup, waitForPodGroups)",
    )
    assert str(caught.value) == f"T/W needs {driver} and {groups}, which dsched does not have"


def test_a_multiplier_makes_more_pods(tmp_path: Path) -> None:
    (made,) = one(tmp_path, "{opcode: createPods, countParam: $n, countMultiplier: 3}")
    (plain,) = one(tmp_path, "{opcode: createPods, countParam: $n}")
    assert isinstance(made, CreatePods) and isinstance(plain, CreatePods)
    assert made.count == 3 * plain.count > 0


def test_a_configuration_is_named_beside_the_file(tmp_path: Path) -> None:
    named, _ = cases(
        tmp_path, FILE.replace("  featureGates: {A", "  schedulerConfigPath: one.yaml\n  featureGates: {A")
    )

    assert (named.config, cases(tmp_path)[0].config) == (tmp_path / "one.yaml", None)


def test_nodes_declare_as_many_features_as_a_parameter_says_where_the_gate_is_on(tmp_path: Path) -> None:
    text = FILE.replace("nodes: 3", "nodes: 3, numNodeDeclaredFeatures: 11")
    on = text.replace("B: false", "NodeDeclaredFeatures: true")

    assert [case.declared_features for case in cases(tmp_path, text)] == [[], []]
    assert cases(tmp_path, on)[0].declared_features[:3] == ["Feature1", "Feature10", "Feature11"]


@pytest.mark.parametrize(
    ("operation", "wrong"),
    [
        ("{opcode: createNodes, colour: red}", "colour"),
        ("{opcode: createNodes, count: many}", "count"),
        ("{opcode: createPods, collectMetrics: true, skipWaitToCompletion: true}", "exclude each other"),
        ("{opcode: barrier, stageRequirement: Bound}", "neither Scheduled nor Attempted"),
        ("{opcode: churn, mode: often, templatePaths: [a]}", "neither create nor recreate"),
        ("{opcode: churn, mode: recreate, templatePaths: [a]}", "must be positive"),
        ("{opcode: deletePods}", "namespace"),
        ("{opcode: createPods, signatureBatchSize: -1}", "is negative"),
    ],
)
def test_an_operation_that_cannot_be_read_is_told(operation: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=wrong):
        one(tmp_path, operation)


@pytest.mark.parametrize("text", ["a: b", "[{name: T}]", "{"])
def test_a_file_of_another_kind_is_refused_by_name(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=workloads.FILE):
        cases(tmp_path, text)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no performance-config\.yaml"):
        workloads.read(tmp_path)


@pytest.mark.parametrize(
    ("folder", "given", "threshold"),
    [
        ("dra", "{dra: 56}", 56),
        ("dra/devicetaints", "{dra: 56, dra_devicetaints: 7}", 7),
        ("topology_spreading", "{topologyspreading: 5, dra: 56}", 5),
        ("misc", "{dra: 56}", 0),
        ("hydra", "{dra: 56}", 0),
        ("misc", "{}", 0),
        ("misc", "12.5", 12.5),
    ],
)
def test_a_threshold_may_be_given_by_the_topic_of_the_folder(
    folder: str, given: str, threshold: float, tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir(parents=True)

    first, _ = cases(tmp_path / folder, FILE.replace("12.5", given))

    assert (first.workload.threshold, first.wrong) == (threshold, "")


def test_a_workload_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    bad = "{name: Bad, threshold: {misc: high}}\n  - {params: {n: 1}}\n  - {name: One,"
    (tmp_path / "misc").mkdir()

    bad_one, nameless, one, two = cases(tmp_path / "misc", FILE.replace("{name: One,", bad))

    assert [bad_one.name, nameless.name, one.name, two.name] == [
        "Small/Bad",
        "Small/workloads[1]",
        "Small/One",
        "Small/Two/b",
    ]
    assert one.operations()
    with pytest.raises(ConfigError, match=r"performance-config\.yaml: Small/Bad cannot be read: .*`\$\.threshold`"):
        bad_one.operations()
    with pytest.raises(ConfigError, match="name"):
        nameless.operations()


def test_a_parameter_may_have_a_default(tmp_path: Path) -> None:
    operation = "{opcode: createPods, count: 1, templateParams: {a: $n|7, b: $m|7, c: $m|}}"

    (pods,) = one(tmp_path, operation)

    assert isinstance(pods, CreatePods)
    assert pods.template_params == {"a": 2, "b": "7", "c": ""}


@pytest.mark.parametrize(
    "operation",
    [
        "{opcode: createAny, templatePath: group.yaml}",
        "{opcode: updateAny, templatePath: group.yaml}",
    ],
)
def test_what_an_operation_cannot_do_here_is_told_before_a_system_starts(operation: str, tmp_path: Path) -> None:
    (tmp_path / "group.yaml").write_text("apiVersion: v1\nkind: CompositePodGroup\nspec: {{ if .x }}1{{ end }}\n")

    with pytest.raises(Unsupported, match=r"T/W.* needs .*, which dsched (bench )?does not have"):
        one(tmp_path, operation)


INCOMPLETE = {f"SchedulingWithResourceClaimTemplate/empty_{nodes}nodes" for nodes in (100, 200)}
"""Workloads that lack a parameter that upstream's own test cannot do without either."""


@needs_shared
def test_every_workload_of_v1_37_is_planned_or_not_supported() -> None:
    found = workloads.read(SHARED)
    planned = 0

    for case in found:
        if case.needs:
            assert all(need == GROUPS or need.startswith("the feature DRA") for need in case.needs), case.name
            with pytest.raises(Unsupported, match="which dsched does not have"):
                case.operations()
        elif case.name in INCOMPLETE:
            with pytest.raises(ConfigError, match=r"operation 7: there is no parameter \$measurePods; there are "):
                case.operations()
        else:
            planned += bool(case.operations())

    assert planned == sum(not case.needs for case in found) - len(INCOMPLETE) > 200
    assert {case.workload.threshold for case in found if case.file.parent.name == "dra"} >= {56, 60, 64}


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "NodeDeclaredFeaturesEnabled/5000Nodes20DeclaredFeatures",
        "NodeDeclaredFeaturesEnabled/5000Nodes100DeclaredFeatures",
        "DefaultTopologySpreading/5000Nodes_50000Pods",
        "SchedulingDeletedPodsWithFinalizers/5000Node_5000DeletingPods",
        "SchedulingBasic/5000Nodes_50000Pods",
        "Unschedulable/5kNodes/20kInit/10kPods",
        "StarvationIndependent/10000Nodes_10000Cloggers",
        "HostPortConflict/20000Nodes_20000Pods_1000BatchSize",
        "ResourceSaturation/20000Nodes_20000Pods_OpportunisticBatchingDisabled",
    ],
)
def test_a_workload_of_v1_37_can_be_planned_and_its_gates_be_set(name: str) -> None:
    (case,) = workloads.choose(workloads.read(SHARED), [name], "")

    assert case.operations()
    assert dict(emulated(case.feature_gates).features.given) == case.feature_gates
    assert case.config is None or case.config.is_file()


@needs_older
def test_every_workload_of_v1_36_can_be_planned() -> None:
    found = workloads.read(OLDER)

    assert len(found) == len({case.name for case in found})
    for case in found:
        assert case.operations(), case.name


def templates(case: workloads.Case) -> Iterator[Template]:
    """Those of nodes, pods and other objects in the operations of a workload."""
    for operation in case.operations():
        params = getattr(operation, "template_params", {})
        paths = [getattr(operation, name, None) for name in ("node_template_path", "template_path")]
        if isinstance(operation, CreatePods):
            paths.append(operation.pod_template_path or case.pod_template)
        paths += getattr(operation, "template_paths", ())
        yield from (Template(case.path(path), params) for path in paths if path)


@needs_shared
def test_every_template_makes_objects_that_can_be_applied() -> None:
    seen = set()

    for case in workloads.read(SHARED):
        for template in () if case.needs or case.name in INCOMPLETE else templates(case):
            if template.path in seen:
                continue
            seen.add(template.path)
            for index in (0, 11):
                made = Maker(0).any(template, index, 12, "default")
                assert made.value["metadata"]["name"], template.path
    assert len(seen) > 50


def test_own_queues_are_a_tree_of_four_levels_whose_leaves_the_pods_name() -> None:
    own = Path(__file__).parents[3] / "benchmarks" / "scheduler_perf"
    names = ["Queues/5000Nodes_100000Pods_1000Queues"]
    (case,) = workloads.choose(workloads.read(own), names, "")
    maker, made = Maker(0), []
    for operation in case.operations():
        if isinstance(operation, operations.CreateAny):
            template = Template(case.path(operation.template_path), operation.template_params)
            made += [maker.any(template, index, operation.count, None) for index in range(operation.count)]
    tree = Tree(msgspec.convert(each.value, Queue) for each in made)
    leaves = {name for name, share in tree.shares.items() if len(list(share.path())) == 4}

    assert (len(tree), len(leaves), tree.broken) == (1000, 900, {})
    assert {name for name, share in tree.shares.items() if not share.children} == leaves
    (pods,) = [each for each in case.operations() if isinstance(each, CreatePods)]
    assert case.pod_template is not None
    template = Template(case.path(case.pod_template), pods.template_params)
    assert {template.object(index)["metadata"]["labels"][LABEL] for index in range(900)} == leaves
