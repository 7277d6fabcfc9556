"""scheduler_perf's files: tests, their workloads, and the operations of one workload with its parameters put in.

Source: kubernetes v1.37 test/integration/scheduler_perf/{scheduler_perf,operations}.go (``testCase``, ``Workload``,
``realOp``).

What a workload needs that dsched does not have, a test driver of devices, composite pod groups, and the like, is found
in operations as they stand in a file, in the kinds of the objects that they create, and in feature gates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dsched.bench import operations
from dsched.bench.operations import KNOWN, CreatePodSets, Operation, Unsupported
from dsched.bench.templates import Template
from dsched.config.feature_gates import NOT_YET
from dsched.errors import ConfigError, ManifestError
from dsched.manifests import documents, kinds

FILE = "performance-config.yaml"
_DECLARED = "NodeDeclaredFeatures"
DRIVERS, GROUPS, PROFILES = "a test driver of devices", "pod groups", "profiles of a Go process"
_OPCODES = {
    "createResourceClaims": DRIVERS,
    "createResourceDriver": DRIVERS,
    "waitForPodGroups": GROUPS,
    "startCollectingProfile": PROFILES,
    "stopCollectingProfile": PROFILES,
}
_KINDS = {
    "CompositePodGroup": GROUPS,
    "Workload": GROUPS,
}
_GATES = {
    "CompositePodGroup": GROUPS,
    "PodGroupPreemptionPolicy": GROUPS,
}

Needs = Mapping[str, Sequence[str]]
"""What is needed, and what of the workload says so."""


class Workload(msgspec.Struct, rename="camel", frozen=True):
    """One size of a test.

    Attributes:
        threshold: the least average throughput in pods a second that upstream demands on its machines; 0 for none.
        feature_gates: of kube-scheduler.
    """

    name: str
    params: Mapping[str, Any] = {}
    labels: Sequence[str] = ()
    threshold: float = 0.0
    feature_gates: Mapping[str, bool] = {}


class _Test(msgspec.Struct, rename="camel", frozen=True):
    name: str
    workload_template: Sequence[Mapping[str, Any]]
    workloads: Sequence[Mapping[str, Any]]
    default_pod_template_path: str | None = None
    scheduler_config_path: str | None = None
    feature_gates: Mapping[str, bool] = {}
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A workload that can be run.

    Attributes:
        file: that it is from; paths in the operations are relative to its folder.
        template: the operations as they stand in the file.
        pod_template: for createPods that name none; None for upstream's built-in pod.
        config: the KubeSchedulerConfiguration that the test names, None for the default one.
        wrong: why the workload cannot be read; empty when it can.
    """

    test: str
    workload: Workload
    file: Path
    template: Sequence[Mapping[str, Any]]
    pod_template: str | None
    config: Path | None
    feature_gates: Mapping[str, bool]
    labels: Sequence[str]
    wrong: str = ""

    @property
    def name(self) -> str:
        """``TEST/WORKLOAD``."""
        return f"{self.test}/{self.workload.name}"

    @property
    def needs(self) -> Needs:
        """What dsched does not have of what the workload needs; nothing where it can be run.

        Raises:
            ConfigError: a template cannot be read.
        """
        return _needs_of(
            self.template, self.workload.params, self.feature_gates, lambda path: Template(self.path(path))
        )

    @property
    def declared_features(self) -> list[str]:
        """The features that its nodes declare: a parameter says how many, as upstream's test of that name has it."""
        count = self.workload.params.get("numNodeDeclaredFeatures", 0)
        return sorted(f"Feature{number + 1}" for number in range(count)) if self.feature_gates.get(_DECLARED) else []

    def operations(self) -> list[Operation]:
        """What has to be done, in order; createPodSets taken apart, as the numbers of operations name namespaces.

        Raises:
            ConfigError: the workload or an operation cannot be read, or a parameter is named that there is not.
            Unsupported: the workload needs what dsched does not have.
        """
        if self.wrong:
            raise ConfigError(self.wrong)
        if lacking := self.needs:
            raise Unsupported(f"{self.name} {_needs_text(lacking)}")
        found: list[Operation] = []
        for number, raw in enumerate(self.template):
            origin = f"{self.name}: operation {number}"
            operation = operations.read(raw, self.workload.params, origin)
            found += operation.unrolled() if isinstance(operation, CreatePodSets) else [operation]
        return found

    def path(self, given: str) -> Path:
        """A template's path."""
        return (self.file.parent / given).resolve()


def read(path: Path) -> list[Case]:
    """The workloads of a file, or of every ``performance-config.yaml`` below a folder, in the files' order.

    Raises:
        ConfigError: there is none, or a file cannot be read as one.
    """
    files = sorted(path.rglob(FILE)) if path.is_dir() else [path]
    if not files:
        raise ConfigError(f"{path} holds no {FILE}; name a folder of scheduler_perf, or one of its files")
    return [case for file in files for case in _cases(file)]


def choose(cases: Sequence[Case], names: Sequence[str], labels: str) -> list[Case]:
    """The cases with one of the names (``TEST/WORKLOAD``, or ``TEST`` for all of its workloads) and all labels.

    Args:
        labels: as upstream's ``-perf-scheduling-label-filter``: ``performance,-short`` has the one and not the other.

    Raises:
        ConfigError: a name fits nothing.
    """
    for name in names:
        if not any(name in (case.name, case.test) for case in cases):
            near = [case.name for case in cases if case.test == name.partition("/")[0]]
            known = near or sorted({case.test for case in cases})
            raise ConfigError(f"there is no workload {name}; there are {', '.join(known)}")
    wanted = [word.strip() for word in labels.split(",") if word.strip()]
    return [
        case
        for case in cases
        if (not names or case.name in names or case.test in names)
        and all((word.lstrip("+-") in case.labels) is not word.startswith("-") for word in wanted)
    ]


def _cases(file: Path) -> Iterator[Case]:
    try:
        (raw,) = documents.parse(file.read_bytes(), str(file))
        tests = msgspec.convert(raw, list[_Test])
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except (ManifestError, ValueError) as error:
        raise ConfigError(f"{file} is no scheduler_perf configuration: {error}") from error
    for test in tests:
        for number, given in enumerate(test.workloads):
            workload, wrong = _workload(given, number, file.parent)
            yield Case(
                test.name,
                workload,
                file,
                test.workload_template,
                test.default_pod_template_path,
                (file.parent / test.scheduler_config_path).resolve() if test.scheduler_config_path else None,
                {**test.feature_gates, **workload.feature_gates},
                tuple(dict.fromkeys((*test.labels, *workload.labels))),
                f"{file}: {test.name}/{workload.name} cannot be read: {wrong}" if wrong else "",
            )


def _workload(given: Mapping[str, Any], number: int, folder: Path) -> tuple[Workload, str]:
    """A workload, and why it cannot be read: one that cannot has its name and nothing else, and costs no other."""
    threshold = given.get("threshold", 0.0)
    if isinstance(threshold, Mapping):
        threshold = next((least for topic, least in threshold.items() if _has_topic(folder, str(topic))), 0.0)
    try:
        return msgspec.convert({**given, "threshold": threshold}, Workload), ""
    except msgspec.ValidationError as error:
        name = given.get("name")
        return Workload(name=name if isinstance(name, str) else f"workloads[{number}]"), str(error)


def _has_topic(folder: Path, topic: str) -> bool:
    """Whether upstream runs the files of a folder under this topic, by which thresholds may be given since v1.37.

    Each folder has a topic of its own, ``dra_devicetaints`` for ``dra/devicetaints``, ``topologyspreading`` for
    ``topology_spreading``. A threshold that is given for other topics alone is none.
    """
    path = "_".join(part.replace("_", "") for part in folder.resolve().parts)
    return path.endswith(f"_{topic}")


def _needs_of(
    template: Sequence[Mapping[str, Any]],
    params: Mapping[str, Any],
    gates: Mapping[str, bool],
    read: Callable[[str], Template],
) -> Needs:
    """What dsched does not have of what a workload needs.

    Args:
        template: its operations, as in the file; params: what parameters in them stand for.
        read: gives the template with this path.
    """
    found: dict[str, list[str]] = {}
    for raw in template:
        for what, by in _needs_of_operation(raw, params, read):
            found.setdefault(what, []).append(by)
    for gate in (name for name, on in gates.items() if on and name in NOT_YET):
        found.setdefault(_GATES.get(gate, f"the feature {gate}"), []).append(gate)
    return {what: tuple(dict.fromkeys(found[what])) for what in sorted(found)}


def _needs_text(needs: Needs) -> str:
    """``needs pod groups (waitForPodGroups, CompositePodGroup), which dsched does not have``."""
    listed = " and ".join(f"{what} ({', '.join(by)})" for what, by in needs.items())
    return f"needs {listed}, which dsched does not have"


def _needs_of_operation(
    raw: Mapping[str, Any], params: Mapping[str, Any], read: Callable[[str], Template]
) -> Iterator[tuple[str, str]]:
    opcode = str(raw.get("opcode"))
    if opcode not in KNOWN:
        yield _OPCODES.get(opcode, "an operation that is not known"), opcode
    for given in raw.values():
        if isinstance(given, Mapping) and "opcode" in given:
            yield from _needs_of_operation(given, params, read)
    if opcode in ("createAny", "createPodGroups", "updateAny") and isinstance(path := raw.get("templatePath"), str):
        template = read(path)
        name = template.kind
        if name and name not in kinds.BY_NAME:
            yield _KINDS.get(name, f"objects of kind {name}"), name
