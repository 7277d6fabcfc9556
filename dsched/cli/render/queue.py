"""Places of the scheduling queue as lines of text. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from dsched.cli.render import columns
from dsched.cli.render.aligned import aligned
from dsched.observe.words import duration
from dsched.scheduler.ports import QueueName
from dsched.state.places import Placed

LONGEST_CELL = 100
"""A reason is cut here unless everything is asked for."""
PAGE = 1000
"""So many rows are lined up together."""

_NONE = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the pods in some places; wide ones show when everything is asked for."""

    title: str
    cell: Callable[[Placed, int], str]
    places: frozenset[QueueName] | None = None
    wide: bool = False


def counted(counts: Mapping[QueueName, int]) -> list[str]:
    """How many pods stand in each place."""
    return aligned([("PLACE", "PODS"), *((place.value, str(count)) for place, count in counts.items())])


def rows(place: QueueName, pods: Iterable[Placed], now_ms: int, *, wide: bool) -> Iterator[str]:
    """The pods in a place, a line each after the titles; no line where there are none."""
    shown = [each for each in _COLUMNS if (wide or not each.wide) and (each.places is None or place in each.places)]
    cut = None if wide else LONGEST_CELL
    cells = ([_cell(column.cell(pod, now_ms), cut) for column in shown] for pod in pods)
    widths = [0] * len(shown)
    titles: list[list[str]] = [[column.title for column in shown]]
    for page in iter(lambda: list(islice(cells, PAGE)), []):
        table, titles = titles + page, []
        widths = [max(known, new) for known, new in zip(widths, columns.widths(table), strict=True)]
        yield from (columns.line(row, widths) for row in table)


def _cell(text: str, cut: int | None) -> str:
    line = " ".join(text.split()) or _NONE
    return line if cut is None or len(line) <= cut else line[: cut - 1] + "…"


def _ago(then_ms: int | None, now_ms: int) -> str:
    return "" if then_ms is None else duration((now_ms - then_ms) / 1000)


def _left(then_ms: int | None, now_ms: int) -> str:
    if then_ms is None:
        return ""
    return "now" if then_ms <= now_ms else duration((then_ms - now_ms + 999) // 1000)


def _why(pod: Placed) -> str:
    if not pod.resizes:
        return pod.message
    return f"resize on {pod.node}: {pod.message}" if pod.message else f"resize on {pod.node}"


def _in(*places: QueueName) -> frozenset[QueueName]:
    return frozenset(places)


_HELD = _in(QueueName.WAITING, QueueName.RESERVED)
_UNPLACED = frozenset(QueueName) - _HELD

_COLUMNS: Sequence[Column] = (
    Column("POD", lambda pod, now_ms: pod.key),
    Column("GROUP", lambda pod, now_ms: pod.group, _in(QueueName.GROUP)),
    Column("ATTEMPTS", lambda pod, now_ms: str(pod.attempts)),
    Column("FIRST TRIED", lambda pod, now_ms: _ago(pod.first_ms, now_ms)),
    Column("QUEUED", lambda pod, now_ms: _ago(pod.queued_ms, now_ms)),
    Column("LAST TRIED", lambda pod, now_ms: _ago(pod.last_ms, now_ms), wide=True),
    Column("ENDS IN", lambda pod, now_ms: _left(pod.until_ms, now_ms), _in(QueueName.BACKOFF, QueueName.WAITING)),
    Column("NODE", lambda pod, now_ms: pod.node, _HELD),
    Column("STATE", lambda pod, now_ms: pod.state, _in(QueueName.RESERVED)),
    Column("EPOCH", lambda pod, now_ms: str(pod.epoch), _in(QueueName.RESERVED, QueueName.INFLIGHT), wide=True),
    Column("PROFILE", lambda pod, now_ms: pod.profile, wide=True),
    Column("UID", lambda pod, now_ms: pod.uid, wide=True),
    Column("REJECTED BY", lambda pod, now_ms: ",".join(pod.plugins), _UNPLACED),
    Column("WHY", lambda pod, now_ms: _why(pod), _UNPLACED),
)
