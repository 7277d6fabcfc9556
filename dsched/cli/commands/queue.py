"""``dsched queue``: how many pods stand in each place, which, and why they are still there; and commands about some."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from dsched.cli import console, options, watching
from dsched.cli.commands import queue_pods
from dsched.cli.render import columns
from dsched.cli.render.aligned import aligned
from dsched.clock import SystemClock
from dsched.observe.words import duration, paused_lines
from dsched.scheduler.ports import QueueName
from dsched.state import pauses
from dsched.state.client import Store
from dsched.state.pauses import Paused
from dsched.state.places import ALL, Placed, Places

SHOWN = 20
"""Pods of each place that are shown unless told otherwise."""
_LONGEST_CELL = 100
"""A reason is cut here unless everything is asked for."""
_PAGE = 1000
"""So many rows are lined up together."""

_NONE = "-"


class Output(StrEnum):
    """How the answer is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


class Answer(msgspec.Struct, frozen=True):
    """What is printed as JSON; times in ms since the epoch, null where there is none.

    Attributes:
        counts: place to how many pods stand there, of all namespaces.
        pods: place to the first of them, in order.
        paused: whose pods are not tried; profile ``*`` stands for all.
    """

    counts: dict[str, int]
    pods: dict[str, list[Placed]]
    paused: list[Paused] = []


class QueueGroup(TyperGroup):
    """``dsched queue`` shows the queue; only the words of its commands lead elsewhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A place, or an option of `show`, belongs to `show`."""
        if not ctx.resilient_parsing and (not args or args[0] not in (*self.commands, "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


HELP = """
Show the scheduling queue: how many pods stand in each place, and the first of each in their order.

'dsched queue [PLACE…]' is short for 'dsched queue show [PLACE…]'; 'dsched queue show --help' has its options.
"""

group = typer.Typer(cls=QueueGroup, help=HELP, epilog="Example: dsched queue unschedulable --limit 0 -o wide")


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.add_typer(group, name="queue")


@group.command(epilog="Example: dsched queue show unschedulable --limit 0")
def show(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="PLACE", help=f"Only these: {', '.join(ALL)}.", show_default=False),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Show only pods of this namespace.", show_default=False),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show pods of every namespace, as without -n.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Show so many pods of each place, 0 for all.")] = SHOWN,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print them.")] = Output.TABLE,
    watch: watching.Watch = False,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show how many pods stand in each place, and the first of each in their order.

    Active pods are in the order they will be tried, backoff and waiting (for Permit) by when that ends, unschedulable
    and gated by since when they are, group (pods beside their pod group) by when they were queued, in flight by batch,
    reserved (being bound) by since when. Counts are of all namespaces. A pod group stands in the queue as
    podgroup/NAMESPACE/NAME and counts as one pod there.
    """
    chosen = places_of(words or ())
    asked = None if all_namespaces else namespace
    store = options.open_store(redis_url, data_dir, name)

    def text() -> Iterator[str]:
        return lines(store, chosen, limit, asked, SystemClock().now_ms(), wide=output is Output.WIDE)

    def json() -> bytes:
        return msgspec.json.encode(read(store, chosen, limit, asked))

    if output is Output.JSON:
        if watch:
            watching.repeat_json(json)
        else:
            console.write(msgspec.json.format(json()).decode())
    elif watch:
        watching.repeat_text(lambda: "\n".join(text()))
    else:
        for line in text():
            console.out.out(line)


def places_of(words: Sequence[str]) -> list[QueueName]:
    """The places that words name, every one without words.

    Raises:
        BadParameter: a word names none.
    """
    known = {place.value: place for place in ALL}
    found = []
    for word in words:
        place = known.get(word.lower().replace("-", ""))
        if place is None:
            raise typer.BadParameter(f"there is no place {word!r}; places are {', '.join(known)}")
        found.append(place)
    return [place for place in ALL if place in found] or list(ALL)


def read(store: Store, chosen: Sequence[QueueName], limit: int, namespace: str | None) -> Answer:
    """What the scheduler's queues hold now.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    places = Places(store)
    counts = places.counts()
    return Answer(
        counts={place.value: counts[place] for place in chosen},
        pods={place.value: list(places.pods(place, limit, namespace)) for place in chosen},
        paused=pauses.read(store),
    )


def lines(
    store: Store, chosen: Sequence[QueueName], limit: int, namespace: str | None, now_ms: int, *, wide: bool
) -> Iterator[str]:
    """The same as text.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    places = Places(store)
    counts = places.counts()
    if not counts[QueueName.GROUP] and list(chosen) == list(ALL):  # most systems have no pod groups
        chosen = [place for place in ALL if place is not QueueName.GROUP]
    yield from (f"paused: {line}" for line in paused_lines(pauses.read(store), now_ms))
    yield from _counted({place: counts[place] for place in chosen})
    for place in chosen:
        table = _rows(place, places.pods(place, limit, namespace), now_ms, wide=wide)
        first = next(table, None)
        if first is None:
            continue
        yield from ("", f"{place}:", f"  {first}")
        shown = 0
        for line in table:
            yield f"  {line}"
            shown += 1
        if namespace is None and shown < counts[place]:
            yield f"  ({counts[place] - shown} more; --limit 0 shows all)"


queue_pods.register(group)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the pods in some places; wide ones show when everything is asked for."""

    title: str
    cell: Callable[[Placed, int], str]
    places: frozenset[QueueName] | None = None
    wide: bool = False


def _counted(counts: Mapping[QueueName, int]) -> list[str]:
    """How many pods stand in each place."""
    return aligned([("PLACE", "PODS"), *((place.value, str(count)) for place, count in counts.items())])


def _rows(place: QueueName, pods: Iterable[Placed], now_ms: int, *, wide: bool) -> Iterator[str]:
    """The pods in a place, a line each after the titles; no line where there are none."""
    shown = [each for each in _COLUMNS if (wide or not each.wide) and (each.places is None or place in each.places)]
    cut = None if wide else _LONGEST_CELL
    cells = ([_cell(column.cell(pod, now_ms), cut) for column in shown] for pod in pods)
    widths = [0] * len(shown)
    titles: list[list[str]] = [[column.title for column in shown]]
    for page in iter(lambda: list(islice(cells, _PAGE)), []):
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

_COLUMNS: Sequence[_Column] = (
    _Column("POD", lambda pod, now_ms: pod.key),
    _Column("GROUP", lambda pod, now_ms: pod.group, _in(QueueName.GROUP)),
    _Column("ATTEMPTS", lambda pod, now_ms: str(pod.attempts)),
    _Column("FIRST TRIED", lambda pod, now_ms: _ago(pod.first_ms, now_ms)),
    _Column("QUEUED", lambda pod, now_ms: _ago(pod.queued_ms, now_ms)),
    _Column("LAST TRIED", lambda pod, now_ms: _ago(pod.last_ms, now_ms), wide=True),
    _Column("ENDS IN", lambda pod, now_ms: _left(pod.until_ms, now_ms), _in(QueueName.BACKOFF, QueueName.WAITING)),
    _Column("NODE", lambda pod, now_ms: pod.node, _HELD),
    _Column("STATE", lambda pod, now_ms: pod.state, _in(QueueName.RESERVED)),
    _Column("EPOCH", lambda pod, now_ms: str(pod.epoch), _in(QueueName.RESERVED, QueueName.INFLIGHT), wide=True),
    _Column("PROFILE", lambda pod, now_ms: pod.profile, wide=True),
    _Column("UID", lambda pod, now_ms: pod.uid, wide=True),
    _Column("REJECTED BY", lambda pod, now_ms: ",".join(pod.plugins), _UNPLACED),
    _Column("WHY", lambda pod, now_ms: _why(pod), _UNPLACED),
)
