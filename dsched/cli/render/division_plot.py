"""A picture of what other queues would have done with a recorded run: what queues use over time, and how long their
pods wait, as recorded and with these queues."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dsched.recording.division_outcome import STEPS, DividedQueue, Division

_WIDTH, _HEIGHT = 11.0, 3.2
_SIDES = ("as recorded", "with these queues")


def draw(found: Division, path: Path) -> None:
    """Draw queues that have pods of their own: a row for each resource that any queue speaks of, or else for each that
    is used, and one for the waits."""
    parents = {queue.parent for queue in found.queues}
    queues = [queue for queue in found.queues if queue.name not in parents]
    resources = _resources(queues)
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(
        len(resources) + 1,
        2,
        figsize=(_WIDTH, _HEIGHT * (len(resources) + 1)),
        sharex="row",
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for resource, row in zip(resources, axes[:-1], strict=True):
        for side, axis in enumerate(row):
            _use(axis, queues, resource, found, side)
    for side, axis in enumerate(axes[-1]):
        _waits(axis, queues, found, side)
    figure.savefig(path)
    pyplot.close(figure)


def _resources(queues: Sequence[DividedQueue]) -> list[str]:
    every = {each.resource: each for queue in queues for each in queue.resources}
    said = {each.resource for queue in queues for each in queue.resources if each.guaranteed or each.limit is not None}
    return sorted(said or every)


def _use(axis: Any, queues: Sequence[DividedQueue], resource: str, found: Division, side: int) -> None:
    seconds = [step * found.step_ms / 1000 for step in range(STEPS + 1)]
    for name, steps in _steps(queues, resource, side):
        scale = 1000 if resource == "cpu" else 1
        axis.stairs([each / scale for each in steps], seconds, baseline=None, label=name)
    axis.set(title=f"{resource}, {_SIDES[side]}", xlabel="s", ylabel="used")
    axis.legend(loc="upper left", fontsize="small")


def _steps(queues: Sequence[DividedQueue], resource: str, side: int) -> list[tuple[str, Sequence[float]]]:
    told = [(queue, each) for queue in queues for each in queue.resources if each.resource == resource]
    return [(queue.name or "no queue", (each.replayed if side else each.recorded).over_time) for queue, each in told]


def _waits(axis: Any, queues: Sequence[DividedQueue], found: Division, side: int) -> None:
    """Which part of the pods of a queue waited at most so long."""
    for queue in queues:
        told = [each.replayed if side else each.recorded for each in found.pods if each.queue == queue.name]
        spans = sorted(wait.ms / 1000 for wait in told if wait is not None)
        if spans:
            parts = [100 * (number + 1) / len(spans) for number in range(len(spans))]
            axis.step([0, *spans], [0, *parts], where="post", label=queue.name or "no queue")
    axis.set(title=f"waits, {_SIDES[side]}", xlabel="s", ylabel="% of pods waited at most")
    if axis.lines:
        axis.legend(loc="lower right", fontsize="small")
