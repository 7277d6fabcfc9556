"""``dsched top``: what happens in a system: queues, throughput, the leader's time, the fullest nodes."""

from typing import Annotated

import msgspec
import typer

from dsched.cli import console, forms, options, watching
from dsched.cli.render import top as top_report
from dsched.cli.render.top import Answer, Node
from dsched.clock import Clock, SystemClock
from dsched.state import client, lease, pauses, phases, standings
from dsched.state.client import Store
from dsched.state.phases import Written
from dsched.state.places import Places

NODES = 15


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
            console.write("\n".join(top_report.lines(answer, SystemClock().now_ms())))
    elif output is forms.Answer.JSON:
        watching.repeat_json(lambda: msgspec.json.encode(looks.take()), interval)
    else:
        watching.repeat_text(lambda: "\n".join(top_report.lines(looks.take(), SystemClock().now_ms())), interval)


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
        rates, shares, seconds = top_report.between(self._before, (now_s, leader, written))
        self._before = (now_s, leader, written)
        found = [top_report.node(name, fields) for name, fields in standings.read_node_usage(store).items()]
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
