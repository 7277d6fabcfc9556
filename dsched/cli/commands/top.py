"""``dsched top``: what happens in a system: queues, throughput, the leader's time, the fullest nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import typer

from dsched.cli import console, forms, options, watching
from dsched.cli.render.aligned import aligned
from dsched.clock import Clock, SystemClock
from dsched.observe.words import amount, paused_lines
from dsched.scheduler.ports import QueueName
from dsched.state import client, lease, pauses, phases, standings
from dsched.state.client import Store
from dsched.state.pauses import Paused
from dsched.state.phases import Written
from dsched.state.places import Places

BAR = 20
NODES = 15


class Node(msgspec.Struct, frozen=True):
    """A node; amounts by resource, CPU in milli-units.

    Attributes:
        full: the largest share of a resource that is in use, 0 to 1 and beyond where more is used than there is.
        resource: that one; empty where nothing is.
    """

    name: str
    full: float
    resource: str
    used: Mapping[str, int]
    allocatable: Mapping[str, int]


class Answer(msgspec.Struct, frozen=True):
    """
    Attributes:
        leader: identity, None where nobody leads; then rates and phases are empty.
        queues: pods in each place.
        seconds: how long rates and phases look back; None for the leader's whole life, without rates then.
        rates: attempts per second by result: scheduled (bound), unschedulable, error.
        phases: the leader's time by what it did, shares of 1.
        nodes: fullest first; all_nodes: how many there are.
    """

    leader: str | None
    epoch: int
    paused: Sequence[Paused]
    queues: Mapping[str, int]
    seconds: float | None
    rates: Mapping[str, float]
    phases: Mapping[str, float]
    nodes: Sequence[Node]
    all_nodes: int


Look = tuple[float, str, Written]
"""When (monotonic seconds), who led, what the leader had written."""


def between(before: Look | None, now: Look) -> tuple[dict[str, float], dict[str, float], float | None]:
    """Rates, shares of time, and seconds between two looks; of the leader's whole life where there is no earlier look
    at this leader."""
    at_s, leader, written = now
    if not leader:
        return {}, {}, None
    if before is None or before[1] != leader or written.written < before[2].written:
        return {}, _shares(written.seconds), None
    seconds = at_s - before[0]
    earlier = before[2]
    spent = {phase: total - earlier.seconds.get(phase, 0.0) for phase, total in written.seconds.items()}
    rates = {}
    for result, counts in written.attempts.items():
        attempts = sum(counts) - sum(earlier.attempts.get(result, ()))
        rates[result] = round(attempts / seconds, 3) if seconds > 0 else 0.0
    return rates, _shares(spent), round(seconds, 3)


def _shares(spent: Mapping[str, float]) -> dict[str, float]:
    total = sum(spent.values())
    ordered = sorted(spent.items(), key=lambda each: -each[1])
    return {phase: round(each / total, 4) for phase, each in ordered} if total > 0 else {}


def node(name: str, fields: Mapping[str, str]) -> Node:
    """A node from its record ``node:NAME``."""
    used, allocatable = standings.amounts(fields, "used."), standings.amounts(fields, "allocatable.")
    shares = {resource: used.get(resource, 0) / has for resource, has in allocatable.items() if has}
    resource = max(shares, key=lambda each: (shares[each], each), default="")
    full = shares.get(resource, 0.0)
    return Node(name, round(full, 4), resource if full else "", used, allocatable)


def lines(answer: Answer, now_ms: int) -> Iterator[str]:
    """For people."""
    yield f"leader: {answer.leader or 'nobody leads'}, epoch {answer.epoch}"
    yield from (f"paused: {line}" for line in paused_lines(answer.paused, now_ms))
    shown = {place: count for place, count in answer.queues.items() if count or place != QueueName.GROUP}
    yield "queues: " + ", ".join(f"{place} {count}" for place, count in shown.items())
    if answer.seconds is not None:
        rates = {"scheduled": 0.0, **answer.rates}
        yield "pods/s: " + ", ".join(f"{result} {rate:.1f}" for result, rate in rates.items())
    if answer.phases:
        yield "time:   " + ", ".join(f"{phase} {share:.0%}" for phase, share in answer.phases.items() if share >= 0.005)
    if not answer.nodes:
        return
    yield ""
    rows = [
        (each.name, f"{each.full:.0%}", bar(each.full), each.resource or "-", *_shown(each)) for each in answer.nodes
    ]
    yield from aligned([("NODE", "FULL", "", "BY", "CPU", "MEMORY", "PODS"), *rows])
    if answer.all_nodes > len(answer.nodes):
        yield f"({answer.all_nodes - len(answer.nodes)} more nodes; --nodes 0 shows all)"


def bar(share: float) -> str:
    """A share as a bar of BAR characters."""
    filled = min(BAR, max(0, round(share * BAR)))
    return "#" * filled + "." * (BAR - filled)


def _shown(each: Node) -> tuple[str, str, str]:
    cpu, memory, pods = (
        f"{amount(name, each.used.get(name, 0))}/{amount(name, each.allocatable.get(name, 0))}"
        for name in ("cpu", "memory", "pods")
    )
    return cpu, memory, pods


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched top --once -o json | jq .rates.scheduled")(top)


def top(
    once: Annotated[bool, typer.Option("--once", help="Look twice, an interval apart, print once, and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between looks.")] = 1.0,
    nodes: Annotated[int, typer.Option(min=0, help="So many of the fullest nodes, 0 for all.")] = NODES,
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show what happens, again and again: queues, pods per second, the leader's time, the fullest nodes.

    Rates and shares of time are those of the last interval, or of the leader's whole life at the first look. A node is
    as full as the fullest of its resources; pods with a node that are not bound yet count.
    """
    store = options.open_store(redis_url, data_dir, name)
    looks = Looks(store, SystemClock(), nodes)
    if once:
        looks.take()
        SystemClock().sleep(interval)
        answer = looks.take()
        if output is forms.Answer.JSON:
            console.write(forms.as_json(answer))
        else:
            console.write("\n".join(lines(answer, SystemClock().now_ms())))
    elif output is forms.Answer.JSON:
        watching.repeat_json(lambda: msgspec.json.encode(looks.take()), interval)
    else:
        watching.repeat_text(lambda: "\n".join(lines(looks.take(), SystemClock().now_ms())), interval)


class Looks:
    """One look after the other; each tells what changed since the one before."""

    def __init__(self, store: Store, clock: Clock, nodes: int) -> None:
        self._store = store
        self._clock = clock
        self._nodes = nodes
        self._before: tuple[float, str, Written] | None = None

    def take(self) -> Answer:
        """Look now.

        Raises:
            RedisUnavailable: Redis does not answer.
        """
        store = self._store
        with client.reachable(store):
            held = lease.holder(store)
        leader, epoch = held or ("", 0)
        now_s, written = self._clock.monotonic(), phases.read(store)
        rates, shares, seconds = between(self._before, (now_s, leader, written))
        self._before = (now_s, leader, written)
        found = [node(name, fields) for name, fields in standings.read_node_usage(store).items()]
        found.sort(key=lambda each: (-each.full, each.name))
        return Answer(
            leader=leader or None,
            epoch=epoch,
            paused=pauses.read(store),
            queues={place.value: count for place, count in Places(store).counts().items()},
            seconds=seconds,
            rates=rates,
            phases=shares,
            nodes=_first(found, self._nodes),
            all_nodes=len(found),
        )


def _first(found: list[Node], most: int) -> list[Node]:
    return found[:most] if most else found
