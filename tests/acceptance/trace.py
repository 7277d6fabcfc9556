"""Clusters of production size: the openb trace, and one made up in the same two files for where it is not there."""

import csv
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time")

OPENB = Path("data/openb")

_SHAPES = (
    # share, cores, GiB, GPUs, model
    (36, 96, 384, 8, "G2"),
    (26, 104, 512, 2, "T4"),
    (13, 32, 256, 0, ""),
    (9, 16, 120, 2, "P100"),
    (6, 96, 512, 0, ""),
    (5, 128, 768, 8, "G3"),
    (5, 8, 32, 1, "V100M16"),
)
_MODELS = tuple(model for *_, model in _SHAPES if model)
_CPUS = (1000, 3152, 4000, 8000, 9810, 11300, 16000, 32000)


@dataclass(frozen=True)
class Trace:
    """Two CSV files that ``dsched import openb`` reads."""

    name: str
    nodes: Path
    pods: Path


def openb(shared: Path) -> Trace | None:
    """The trace of a production GPU cluster, None where it is not there. Its pods name no GPU models."""
    nodes = shared / OPENB / "openb_node_list_all_node.csv"
    pods = shared / OPENB / "openb_pod_list_default.csv"
    return Trace("openb", nodes, pods) if nodes.exists() and pods.exists() else None


def generate(folder: Path, seed: int, nodes: int = 1500, pods: int = 8000) -> Trace:
    """A heterogeneous GPU cluster and more pods than it can take, always the same ones for a seed: a fifth of the GPU
    pods wants certain models, and some pods are larger than any node."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    made = Trace("generated", folder / "nodes.csv", folder / "pods.csv")
    _write(made.nodes, NODE_COLUMNS, (_node(rng, number) for number in range(nodes)))
    _write(made.pods, POD_COLUMNS, (_pod(rng, number) for number in range(pods)))
    return made


def _node(rng: random.Random, number: int) -> Sequence[object]:
    _, cores, gib, gpus, model = rng.choices(_SHAPES, [shape[0] for shape in _SHAPES])[0]
    return f"node-{number:04}", cores * 1000, gib * 1024, gpus, model


def _pod(rng: random.Random, number: int) -> Sequence[object]:
    name, created = f"pod-{number:04}", number * 10
    qos = rng.choices(("LS", "BE", "Burstable", "Guaranteed"), (57, 41, 1.5, 0.5))[0]
    if rng.random() < 0.002:
        return name, 200_000, 1024, 0, 0, "", qos, created
    cpu, memory = rng.choice(_CPUS), rng.choice((2, 8, 16, 32, 64)) * 1024
    gpus = rng.choices((0, 1, 2, 8), (20, 72, 5, 3))[0]
    milli = rng.choice((200, 460, 500, 810, 1000)) if gpus == 1 else 1000
    models = rng.sample(_MODELS, rng.randint(1, 2)) if gpus and rng.random() < 0.2 else []
    return name, cpu, memory, gpus, milli if gpus else 0, "|".join(models), qos, created


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
