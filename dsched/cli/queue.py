"""``dsched queue``: how many pods stand in each place, which, and why they are still there."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from rich.live import Live
from rich.text import Text

from dsched.cli import console, options, queue_rows
from dsched.clock import SystemClock
from dsched.state.client import Store
from dsched.state.places import ALL, Placed, Places
from dsched.state.queue import Place

SHOWN = 20
"""Pods of each place that are shown unless told otherwise."""
LOOK_EVERY_S = 1.0


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
    """

    counts: dict[str, int]
    pods: dict[str, list[Placed]]


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched queue unschedulable --limit 0")(queue)


def queue(
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
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every second.")] = False,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show the scheduling queue: how many pods stand in each place, and the first of each in their order.

    Active pods are in the order they will be tried, backoff and waiting (for Permit) by when that ends, unschedulable
    and gated by since when they are, in flight by batch, reserved (being bound) by since when. Counts are of all
    namespaces.
    """
    chosen = places_of(words or ())
    asked = None if all_namespaces else namespace
    store = options.open_store(redis_url, data_dir, name)

    def text() -> Iterator[str]:
        return lines(store, chosen, limit, asked, SystemClock().now_ms(), wide=output is Output.WIDE)

    def json() -> bytes:
        return msgspec.json.encode(read(store, chosen, limit, asked))

    if watch:
        if output is Output.JSON:
            _watch(lambda: json().decode(), in_place=False)
        else:
            _watch(lambda: "\n".join((*text(), "", "")), in_place=console.out.is_terminal)
    elif output is Output.JSON:
        console.write(msgspec.json.format(json()).decode())
    else:
        for line in text():
            console.out.out(line)


def places_of(words: Sequence[str]) -> list[Place]:
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


def read(store: Store, chosen: Sequence[Place], limit: int, namespace: str | None) -> Answer:
    """What the scheduler's queues hold now.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    places = Places(store)
    counts = places.counts()
    return Answer(
        counts={place.value: counts[place] for place in chosen},
        pods={place.value: list(places.pods(place, limit, namespace)) for place in chosen},
    )


def lines(
    store: Store, chosen: Sequence[Place], limit: int, namespace: str | None, now_ms: int, *, wide: bool
) -> Iterator[str]:
    """The same as text.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    places = Places(store)
    counts = places.counts()
    yield from queue_rows.counted({place: counts[place] for place in chosen})
    for place in chosen:
        table = queue_rows.rows(place, places.pods(place, limit, namespace), now_ms, wide=wide)
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


def _watch(look: Callable[[], str], *, in_place: bool) -> None:
    """Look again and again until interrupted, in place on a terminal or one answer after the other."""
    clock = SystemClock()
    try:
        while not in_place:
            console.write(look())
            clock.sleep(LOOK_EVERY_S)
        with Live(console=console.out, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                live.update(Text(look(), no_wrap=True, overflow="crop"), refresh=True)
                clock.sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        return
