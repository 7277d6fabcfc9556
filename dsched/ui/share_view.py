"""How shares of queues are drawn: which queues are on a page, bars, and lines over time. Pure; lengths are percents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsched.observe import words
from dsched.ui.shares import SharesLook, ShownQueue, ShownResource
from dsched.ui.usage_history import KEPT, UsageHistory

ROWS = 100
"""Queues on a page."""
SPARKS = 30
"""Points of a small line."""
WIDTH, HEIGHT = 1000, 1000
"""Of the box in which lines are drawn; it is stretched to where it stands."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The queues on a page.

    Attributes:
        depth: of the highest ones.
        levels: so many of these are shown; there are `deepest`.
    """

    rows: Sequence[ShownQueue]
    depth: int
    levels: int
    deepest: int
    more: bool


def choose(
    queues: Sequence[ShownQueue], above: str = "", *, levels: int | None = None, query: str = "", page: int = 1
) -> Chosen:
    """Queues in the order of the tree.

    Args:
        above: only those below this one; empty for all.
        levels: None for as many as leave no more than a page, at least one.
        query: only those that have this in their name, of all levels.
    """
    if above:
        at = next((place for place, each in enumerate(queues) if each.name == above), len(queues))
        top = queues[at].depth if at < len(queues) else 0
        end = next((place for place in range(at + 1, len(queues)) if queues[place].depth <= top), len(queues))
        queues = queues[at + 1 : end]
    depth = min((each.depth for each in queues), default=0)
    deepest = max((each.depth - depth + 1 for each in queues), default=0)
    if wanted := query.strip().casefold():
        queues, levels = [each for each in queues if wanted in each.name.casefold()], deepest
    elif levels is None:
        levels = max((n for n in range(1, deepest + 1) if _count(queues, depth + n) <= ROWS), default=1)
    rows = [each for each in queues if each.depth < depth + levels]
    start = (page - 1) * ROWS
    return Chosen(rows[start : start + ROWS], depth, levels, deepest, len(rows) > start + ROWS)


def _count(queues: Sequence[ShownQueue], depth: int) -> int:
    return sum(each.depth < depth for each in queues)


def columns(look: SharesLook, *, every: bool) -> list[str]:
    """The resources that are shown: those that queues speak of, or every one where that is wanted or they name none."""
    named = {name for each in look.shares.queues for name, share in each.resources.items() if share.named}
    return [name for name in look.shares.resources if every or not named or name in named]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, as far as the scale goes.

    Attributes:
        own: what is used of the guarantee; `borrowed` follows.
        guaranteed, limit, fair: where the marks stand; None for none.
        words: the same for people.
    """

    own: float
    borrowed: float
    guaranteed: float | None
    limit: float | None
    fair: float
    words: str


def bar(look: SharesLook, queue: ShownQueue, resource: str) -> Bar:
    """What a queue has of a resource, to the scale of its siblings."""
    share = queue.resources[resource]
    whole = look.scales.get((queue.parent, resource), 0)

    def part(amount: int) -> float:
        return round(min(100.0, 100.0 * amount / whole), 2) if whole > 0 else 0.0

    own = part(share.used - share.borrowed)
    return Bar(
        own,
        round(part(share.used) - own, 2),
        part(share.guaranteed) if share.guaranteed else None,
        None if share.limit is None or share.limit > whole else part(share.limit),
        part(share.fair_share),
        told(resource, share),
    )


def told(resource: str, share: ShownResource) -> str:
    """As `dsched explain pod` has it, and the fair share."""
    has = words.queue_has(resource, share.used, share.guaranteed, share.limit)
    waits = f", {words.amount(resource, share.pending)} pending" if share.pending else ""
    return f"{has}, fair share {words.amount(resource, share.fair_share)}{waits}"


@dataclass(frozen=True, slots=True)
class Lines:
    """What a queue had of something over time.

    Attributes:
        most: the amount at the upper edge.
        from_ms, to_ms: at the left and the right one.
        used, fair: points of lines, as SVG takes them; several where some are missing.
        levels: name to how high an amount stands that does not change.
    """

    most: int
    from_ms: int
    to_ms: int
    used: Sequence[str]
    fair: Sequence[str]
    levels: Mapping[str, int]


def lines(history: UsageHistory, queue: ShownQueue, resource: str, points: int = KEPT) -> Lines | None:
    """Usage and fair share of a resource; None where there is no line yet.

    Args:
        points: as for `UsageHistory.read`.
    """
    share = queue.resources[resource]
    first, second = (queue.name, "used", resource), (queue.name, "fair_share", resource)
    times, found = history.read([first, second], points)
    return _lines(times, found.get(first, ()), found.get(second, ()), share)


def pod_lines(history: UsageHistory, queue: ShownQueue) -> Lines | None:
    """Pods that waited (as used) and those that had to go since the first point (as fair)."""
    first, second = (queue.name, "pending_pods"), (queue.name, "reclaimed_pods")
    times, found = history.read([first, second])
    gone = found.get(second, ())
    start = next((each for each in gone if each is not None), 0.0)
    return _lines(times, found.get(first, ()), [None if each is None else max(0.0, each - start) for each in gone])


def taken_back(history: UsageHistory, name: str) -> int:
    """How many pods had to go in the time that is kept."""
    return int(history.risen((name, "reclaimed_pods")))


def _lines(
    times: Sequence[int], used: Sequence[float | None], fair: Sequence[float | None], share: ShownResource | None = None
) -> Lines | None:
    if sum(each is not None for each in used) < 2:
        return None
    most = max(1.0, *(each for each in (*used, *fair) if each is not None))
    marks = {} if share is None else {"guaranteed": share.guaranteed, "limit": share.limit}
    drawn = {name: each for name, each in marks.items() if each and each <= 2 * most}
    most = max(most, *drawn.values()) if drawn else most
    span = max(1, times[-1] - times[0])
    x = [round(WIDTH * (at - times[0]) / span) for at in times]
    heights = {name: _height(each, most) for name, each in drawn.items()}
    return Lines(round(most), times[0], times[-1], _drawn(x, used, most), _drawn(x, fair, most), heights)


def _height(amount: float, most: float) -> int:
    return round(HEIGHT * (1 - amount / most))


def _drawn(x: Sequence[int], values: Sequence[float | None], most: float) -> list[str]:
    """A line for each piece without gaps."""
    pieces: list[list[str]] = [[]]
    for at, value in zip(x, values, strict=True):
        if value is not None:
            pieces[-1].append(f"{at},{_height(value, most)}")
        elif pieces[-1]:
            pieces.append([])
    return [" ".join(piece) for piece in pieces if len(piece) > 1]
