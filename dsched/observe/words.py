"""Amounts, time spans and places in words: the terminal and the web page say the same. No I/O."""

from collections.abc import Sequence

from dsched.scheduler.ports import QueueName
from dsched.state import pauses
from dsched.state.position import Position

_BINARY_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def duration(seconds: float) -> str:
    """A time span as kubectl shows it: ``5s``, ``3m12s``, ``2h5m``, ``3d4h``."""
    whole = max(0, int(seconds))
    for size, unit, smaller, smaller_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f"{rest}{smaller_unit}" if rest else "")
    return f"{whole}s"


def amount(resource: str, counted: int) -> str:
    """An amount for people: cores of CPU, binary units of memory and storage, a plain number for the rest."""
    if resource == "cpu":
        return f"{counted / 1000:g}"
    if resource == "memory" or resource.endswith("storage"):
        for unit, size in _BINARY_UNITS:
            if counted >= size:
                return f"{round(counted / size, 1):g}{unit}"
    return str(counted)


def queue_has(resource: str, used: int, guaranteed: int, limit: int | None) -> str:
    """What a queue has: ``40 of 40 nvidia.com/gpu guaranteed, 12 borrowed, limit 52``."""
    inside, beyond = min(used, guaranteed), max(0, used - guaranteed)
    told = f"{amount(resource, inside)} of {amount(resource, guaranteed)} {resource} guaranteed"
    told = f"{told}, {amount(resource, beyond)} borrowed"
    return told if limit is None else f"{told}, limit {amount(resource, limit)}"


def titled(profile: str) -> str:
    """What a pause is about, in words."""
    return "all profiles" if profile == pauses.EVERYTHING else f"profile {profile}"


def paused_lines(paused: Sequence[pauses.Paused], now_ms: int) -> list[str]:
    """A line for each pause."""
    lines = []
    for each in paused:
        since = f" for {duration((now_ms - each.since_ms) / 1000)}" if each.since_ms else ""
        lines.append(f"{titled(each.profile)}{since}{f' ({each.reason})' if each.reason else ''}")
    return lines


def standing(found: Position, now_ms: int) -> str:
    """Where a pod or a pod group stands, in words that follow its name."""
    tried = f"tried {found.attempts} times" if found.attempts != 1 else "tried once"
    return f"{_place(found, now_ms)} ({tried})"


def _place(found: Position, now_ms: int) -> str:
    match found.place:
        case QueueName.ACTIVE:
            what = f"is number {(found.before or 0) + 1} of {found.pods} in the active queue"
        case QueueName.BACKOFF:
            left = max(0, (found.until_ms or now_ms) - now_ms + 999) // 1000
            what = f"is in backoff for {duration(left)}; {found.before} pods stand before it"
        case QueueName.UNSCHEDULABLE:
            what = "is unschedulable: it is tried again when something changes that may help, or after 5 minutes"
        case QueueName.GATED:
            what = f"is gated by {', '.join(found.plugins) or 'a plugin'}"
        case QueueName.GROUP:
            where = "is not in the queue" if found.entity is None else _place(found.entity, now_ms)
            what = f"waits with its pod group {found.group}, which {where}"
        case QueueName.INFLIGHT:
            what = "is being decided"
        case QueueName.WAITING:
            what = "has a node and waits for Permit"
        case _:
            what = "has a node and is being bound"
    return what
