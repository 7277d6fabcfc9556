"""What other queues would have done with a recorded run, as JSON and as lines of text. No I/O."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dsched.cli.render import columns
from dsched.observe.words import amount, duration
from dsched.recording.division_outcome import (
    NO_QUEUE,
    DividedQueue,
    DividedResource,
    Division,
    PodWaits,
    Used,
    Wait,
    Waited,
)

VERSION = 1
"""Of the JSON; it grows when a field goes or means something else."""

_WAITS = ("QUEUE", "PODS", "MEDIAN WAIT", "95% WAIT", "STILL WAITING", "RECLAIMED")
_USES = ("QUEUE", "RESOURCE", "MEAN USE", "USE IN THE END", "FAIR SHARE", "GUARANTEED", "LIMIT")
_PODS = ("POD", "QUEUE", "WAITED")


def encoded(found: Division) -> bytes:
    """As JSON; amounts are whole numbers, CPU in milli-units, times and spans in ms."""
    return msgspec.json.encode(
        {
            "version": VERSION,
            "beganMs": found.began_ms,
            "endedMs": found.ended_ms,
            "beginnings": found.beginnings,
            "stepMs": found.step_ms,
            "evicted": {
                "recorded": found.recorded_evicted,
                "replayed": found.replayed_evicted,
                "cameAgain": found.came_again,
            },
            "queues": [_queue_json(each) for each in found.queues],
            "pods": [_pod_json(each) for each in found.pods],
        }
    )


def _queue_json(queue: DividedQueue) -> dict[str, object]:
    return {
        "name": queue.name,
        "parent": queue.parent,
        "known": queue.known,
        "recorded": _waited_json(queue.recorded),
        "replayed": _waited_json(queue.replayed),
        "resources": [_resource_json(each) for each in queue.resources],
    }


def _waited_json(waited: Waited) -> dict[str, object]:
    return {
        "pods": waited.pods,
        "medianWaitMs": waited.median_ms,
        "p95WaitMs": waited.p95_ms,
        "waiting": waited.waiting,
        "reclaimed": waited.reclaimed,
    }


def _resource_json(each: DividedResource) -> dict[str, object]:
    return {
        "resource": each.resource,
        "guaranteed": each.guaranteed,
        "limit": each.limit,
        "fairShare": each.fair_share,
        "recorded": _used_json(each.recorded),
        "replayed": _used_json(each.replayed),
    }


def _used_json(used: Used) -> dict[str, object]:
    return {"mean": used.mean, "end": used.end, "overTime": used.over_time}


def _pod_json(each: PodWaits) -> dict[str, object]:
    return {
        "pod": each.pod,
        "queue": each.queue,
        "recorded": _wait_json(each.recorded),
        "replayed": _wait_json(each.replayed),
    }


def _wait_json(wait: Wait | None) -> dict[str, object] | None:
    return None if wait is None else {"waitMs": wait.ms, "placed": wait.over, "waiting": wait.waits}


def lines(found: Division, *, wide: bool) -> Iterator[str]:
    """For people: what became of pods, how long those of each queue waited, what queues used; `wide`: each pod.
    Where it is the same as recorded, one figure stands for both."""
    came = sum(each.recorded is not None for each in found.pods), sum(each.replayed is not None for each in found.pods)
    told = [f"{_both(*map(str, came))} pods came in {duration((found.ended_ms - found.began_ms) / 1000)}"]
    again = f", {found.came_again} of these came again" if found.came_again else ""
    told.append(f"{found.recorded_evicted} evicted as recorded, {found.replayed_evicted} with these queues{again}")
    yield "; ".join(told)
    depths = _depths(found.queues)
    yield from _table(_WAITS, (_waits(each, depths[each.name]) for each in found.queues))
    yield from _table(_USES, (row for each in found.queues for row in _uses(each, depths[each.name])))
    if unknown := [each.name for each in found.queues if not each.known]:
        yield ""
        yield f"Not among these queues, so that their pods wait: {', '.join(unknown)}"
    if wide:
        yield from _table(_PODS, map(_pod, found.pods))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = [header, *rows]
    if len(table) == 1:
        return
    yield ""
    widths = columns.widths(table)
    yield from (columns.line(row, widths) for row in table)


def _depths(queues: Sequence[DividedQueue]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for queue in queues:
        depths[queue.name] = depths.get(queue.parent, -1) + 1 if queue.parent else 0
    return depths


def _waits(queue: DividedQueue, depth: int) -> tuple[str, ...]:
    was, now = queue.recorded, queue.replayed
    return (
        _name(queue, depth),
        _both(str(was.pods), str(now.pods)),
        _both(_span(was.median_ms), _span(now.median_ms)),
        _both(_span(was.p95_ms), _span(now.p95_ms)),
        _both(str(was.waiting), str(now.waiting)),
        _both(str(was.reclaimed), str(now.reclaimed)),
    )


def _uses(queue: DividedQueue, depth: int) -> Iterator[tuple[str, ...]]:
    for number, each in enumerate(queue.resources):
        name = each.resource
        has = queue.name != NO_QUEUE and queue.known
        yield (
            "" if number else _name(queue, depth),
            name,
            _both(_mean(name, each.recorded.mean), _mean(name, each.replayed.mean)),
            _both(amount(name, each.recorded.end), amount(name, each.replayed.end)),
            amount(name, each.fair_share) if has else "-",
            amount(name, each.guaranteed) if has else "-",
            "-" if each.limit is None else amount(name, each.limit),
        )


def _mean(resource: str, mean: float) -> str:
    """With a decimal place where it is a number of things of which there are few."""
    counted = mean / 1000 if resource == "cpu" else mean
    return f"{counted:.1f}".removesuffix(".0") if counted < 1000 else amount(resource, round(mean))


def _name(queue: DividedQueue, depth: int) -> str:
    return "  " * depth + queue.name if queue.name != NO_QUEUE else "(no queue)"


def _pod(each: PodWaits) -> tuple[str, ...]:
    return each.pod, each.queue or "-", _both(_waited(each.recorded), _waited(each.replayed))


def _waited(wait: Wait | None) -> str:
    if wait is None:
        return "-"
    return _span(wait.ms) if wait.over else f"{_span(wait.ms)} {'and still waits' if wait.waits else 'and was deleted'}"


def _span(ms: int | None) -> str:
    if ms is None:
        return "-"
    return f"{ms / 1000:.1f}s" if 50 <= ms < 10_000 else duration(ms / 1000)


def _both(was: str, now: str) -> str:
    """As recorded, and as replayed."""
    return was if was == now else f"{was} → {now}"
