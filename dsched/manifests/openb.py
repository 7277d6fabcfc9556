"""The openb trace of a production GPU cluster, as nodes and pods.

Two CSV files: nodes ``sn, cpu_milli, memory_mib, gpu, model`` and pods ``name, cpu_milli, memory_mib, num_gpu,
gpu_milli, gpu_spec, qos, …, creation_time``. GPUs are one resource, a thousand to a device; a pod's GPU models become
node affinity, its QoS a priority.

Source: hkust-adsl/kubernetes-scheduler-simulator, data/csv (Apache License 2.0).
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dsched.errors import ManifestError
from dsched.manifests import kinds, syntax
from dsched.manifests.defaulting import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from dsched.manifests.problems import Problems

GPU = "example.com/gpu-milli"
MODEL_LABEL = "gpu-model"
HOSTNAME_LABEL = "kubernetes.io/hostname"
PODS_A_NODE = "110"
MILLI_A_GPU = 1000
PRIORITIES: Mapping[str, int] = {"BE": 0, "Burstable": 500, "LS": 1000, "Guaranteed": 2000}

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time")

Object = dict[str, Any]


class _Row:
    """A line of a file; reading a column that cannot be taken notes a problem."""

    def __init__(self, cells: Mapping[str, str], place: str, problems: Problems) -> None:
        self._cells = cells
        self._place = place
        self._problems = problems

    def text(self, column: str) -> str:
        return self._cells[column]

    def name(self, column: str) -> str:
        self._note(column, syntax.subdomain(self._cells[column]))
        return self._cells[column]

    def number(self, column: str) -> int:
        """A whole number; an empty cell is 0."""
        cell = self._cells[column]
        self._note(column, "" if not cell or cell.isdecimal() else f'"{cell}" is not a whole number')
        return int(cell) if cell.isdecimal() else 0

    def one_of(self, column: str, known: Mapping[str, int]) -> int:
        cell = self._cells[column]
        self._note(column, "" if cell in known else f'"{cell}" is not one of {", ".join(known)}')
        return known.get(cell, 0)

    def labels(self, column: str) -> list[str]:
        """Label values with ``|`` between them."""
        values = [value for value in self._cells[column].split("|") if value]
        for value in values:
            self._note(column, syntax.label_value(value))
        return values

    def _note(self, column: str, wrong: str) -> None:
        if wrong:
            self._problems.add(self._place, f"{column}: {wrong}")


def count(path: Path) -> int:
    """How many nodes or pods a file has.

    Raises:
        ManifestError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return max(0, sum(1 for _ in file) - 1)
    except OSError as error:
        raise ManifestError([f"{path}: cannot be read: {error}"]) from error


def read(
    nodes: Path, pods: Path, advance: Callable[[int], None] = lambda count: None
) -> tuple[list[Object], list[Object]]:
    """The trace's nodes, and its pods in the order in which they were created.

    Args:
        advance: is told how many more objects are done.

    Raises:
        ManifestError: a file cannot be read, lacks a column, or holds a value that cannot be taken.
    """
    problems = Problems()

    def rows(path: Path, columns: tuple[str, ...]) -> Iterator[_Row]:
        for row in _rows(path, columns, problems):
            yield row
            advance(1)

    node_objects = [_node(row) for row in rows(nodes, NODE_COLUMNS)]
    dated = [(row.number("creation_time"), _pod(row)) for row in rows(pods, POD_COLUMNS)]
    problems.raise_any()
    return node_objects, [pod for _, pod in sorted(dated, key=lambda pair: pair[0])]


def as_list(objects: Iterable[Object]) -> Object:
    """The objects as one manifest of kind List."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def _rows(path: Path, columns: tuple[str, ...], problems: Problems) -> Iterable[_Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                problems.add(f"{path}:1", f"there is no column {', '.join(missing)}")
                return
            for cells in reader:
                place = f"{path}:{reader.line_num}"
                if None in cells or None in cells.values():
                    problems.add(place, f"does not have {len(reader.fieldnames or ())} columns")
                else:
                    yield _Row(cells, place, problems)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ManifestError([f"{path}: cannot be read: {error}"]) from error


def _node(row: _Row) -> Object:
    name, model = row.name("sn"), row.labels("model")
    labels = {HOSTNAME_LABEL: name, **({MODEL_LABEL: model[0]} if model else {})}
    allocatable = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
        "pods": PODS_A_NODE,
        GPU: str(row.number("gpu") * MILLI_A_GPU),
    }
    return {
        "apiVersion": kinds.NODE.api_version,
        "kind": kinds.NODE.name,
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


def _pod(row: _Row) -> Object:
    gpu = {GPU: str(row.number("num_gpu") * row.number("gpu_milli"))}
    requests = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi", **gpu}
    models = row.labels("gpu_spec")
    return {
        "apiVersion": kinds.POD.api_version,
        "kind": kinds.POD.name,
        "metadata": {"name": row.name("name"), "namespace": DEFAULT_NAMESPACE},
        "spec": {
            "schedulerName": DEFAULT_SCHEDULER,
            "priority": row.one_of("qos", PRIORITIES),
            **({"affinity": _affinity(models)} if models else {}),
            "containers": [{"name": "main", "resources": {"requests": requests, "limits": gpu}}],
        },
    }


def _affinity(models: list[str]) -> Object:
    expression = {"key": MODEL_LABEL, "operator": "In", "values": models}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
