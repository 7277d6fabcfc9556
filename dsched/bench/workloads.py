"""scheduler_perf's files: tests, their workloads, and the operations of one workload with its parameters put in.

Source: kubernetes v1.36 test/integration/scheduler_perf/{scheduler_perf,operations}.go (``testCase``, ``Workload``,
``realOp``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dsched.bench import operations
from dsched.bench.operations import CreatePodSets, Operation
from dsched.errors import ConfigError, ManifestError
from dsched.manifests import documents

FILE = "performance-config.yaml"


class Workload(msgspec.Struct, rename="camel", frozen=True):
    """One size of a test.

    Attributes:
        threshold: the least average throughput in pods a second that upstream demands on its machines; 0 for none.
        feature_gates: of kube-scheduler; they are reported, not acted on.
    """

    name: str
    params: Mapping[str, Any] = {}
    labels: Sequence[str] = ()
    threshold: float = 0.0
    feature_gates: Mapping[str, bool] = {}


class _Test(msgspec.Struct, rename="camel", frozen=True):
    name: str
    workload_template: Sequence[Mapping[str, Any]]
    workloads: Sequence[Workload]
    default_pod_template_path: str | None = None
    feature_gates: Mapping[str, bool] = {}
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A workload that can be run.

    Attributes:
        folder: paths in the operations are relative to it.
        template: the operations as they stand in the file.
        pod_template: for createPods that name none; None for upstream's built-in pod.
    """

    test: str
    workload: Workload
    folder: Path
    template: Sequence[Mapping[str, Any]]
    pod_template: str | None
    feature_gates: Mapping[str, bool]
    labels: Sequence[str]

    @property
    def name(self) -> str:
        """``TEST/WORKLOAD``."""
        return f"{self.test}/{self.workload.name}"

    def operations(self) -> list[Operation]:
        """What has to be done, in order; createPodSets taken apart, as the numbers of operations name namespaces.

        Raises:
            ConfigError: an operation cannot be read or names a parameter that there is not.
            Unsupported: an operation is known to be missing here, or not known at all.
        """
        found: list[Operation] = []
        for number, raw in enumerate(self.template):
            operation = operations.read(raw, self.workload.params, f"{self.name}: operation {number}")
            found += operation.unrolled() if isinstance(operation, CreatePodSets) else [operation]
        return found

    def path(self, given: str) -> Path:
        """A template's path."""
        return (self.folder / given).resolve()


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
        for workload in test.workloads:
            yield Case(
                test.name,
                workload,
                file.parent,
                test.workload_template,
                test.default_pod_template_path,
                {**test.feature_gates, **workload.feature_gates},
                tuple(dict.fromkeys((*test.labels, *workload.labels))),
            )
