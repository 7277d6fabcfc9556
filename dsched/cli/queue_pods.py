"""``dsched queue requeue`` and ``dsched queue position``: about some pods of the queue."""

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from dsched.cli import choosing, console, options
from dsched.cli.status import duration, titled
from dsched.clock import SystemClock
from dsched.errors import NotFound
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.state import control, position, requests
from dsched.state.control import EVERYTHING
from dsched.state.position import Position
from dsched.state.queue import Place
from dsched.state.requests import Answer

TIMEOUT_S = 10.0


class Output(StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


Printed = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]
InNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace of pods named without one; with --all-unschedulable, only these."
    ),
]


class Told(msgspec.Struct, frozen=True):
    """Where a pod stands, and whether its profile is paused."""

    position: Position
    paused: bool


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("requeue", epilog="Example: dsched queue requeue shop/web-1 shop/web-2")(requeue)
    app.command("position", epilog="Example: dsched queue position shop/web-1 -o json")(place)


def requeue(
    words: Annotated[list[str] | None, typer.Argument(metavar="[NS/]POD…", show_default=False)] = None,
    all_unschedulable: Annotated[
        bool, typer.Option("--all-unschedulable", help="Every pod that is unschedulable.")
    ] = False,
    namespace: InNamespace = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the leader.")] = TIMEOUT_S,
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Try pods now: the leader puts them from backoff or unschedulable into the active queue, whatever they wait for.

    Exit code 1 when one that was named was not put back: it is not pending, has a node already, or is gated. A pod that
    is active already is left as it is. Attempts are kept, so the next pause is as long as it would have been.
    """
    if bool(words) == all_unschedulable:
        raise typer.BadParameter("name pods, or use --all-unschedulable")
    store = options.open_store(redis_url, data_dir, name)
    keys = [PodKey(key) for key in choosing.keys(kinds.POD, words or (), namespace)]
    answer = requests.ask(store, requests.REQUEUE, timeout, keys, namespace if all_unschedulable else None)
    if output is Output.JSON:
        console.write(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        for line in lines(answer):
            console.out.out(line)
    for each in control.read(store):
        console.err.print(f"note: paused: {titled(each.profile)}, until 'dsched resume'", markup=False)
    if any(not each.done and each.place != Place.ACTIVE for each in answer.pods):
        raise typer.Exit(1)


def lines(answer: Answer) -> list[str]:
    """The answer for people."""
    if answer.pods:
        return [f"{each.pod}: {each.message}" for each in answer.pods]
    return [f"{answer.done} pods put back into the active queue"]


def place(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]POD", show_default=False)],
    namespace: choosing.Namespace = None,
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Tell where a pod stands and how many are tried before it; exit code 1 when it is not pending."""
    store = options.open_store(redis_url, data_dir, name)
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    found = position.find(store, PodKey(key))
    if found is None:
        raise NotFound(f"pod {key} is not pending: it is bound, has ended, is not there, or is another scheduler's")
    paused = control.read(store)
    if output is Output.JSON:
        told = Told(found, control.holds(paused, found.profile))
        console.write(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    console.out.out(sentence(found, SystemClock().now_ms()))
    if found.message:
        console.out.out(f"  last: {' '.join(found.message.split())}")
    for each in paused:
        if each.profile in (EVERYTHING, found.profile):
            console.out.out(f"  paused: {titled(each.profile)}")


def sentence(found: Position, now_ms: int) -> str:
    """Where a pod stands, in words."""
    tried = f"tried {found.attempts} times" if found.attempts != 1 else "tried once"
    match found.place:
        case Place.ACTIVE:
            what = f"is number {(found.before or 0) + 1} of {found.pods} in the active queue"
        case Place.BACKOFF:
            left = max(0, (found.until_ms or now_ms) - now_ms + 999) // 1000
            what = f"is in backoff for {duration(left)}; {found.before} pods stand before it"
        case Place.UNSCHEDULABLE:
            what = "is unschedulable: it is tried again when something changes that may help, or after 5 minutes"
        case Place.GATED:
            what = f"is gated by {', '.join(found.plugins) or 'a plugin'}"
        case Place.INFLIGHT:
            what = "is being decided"
        case Place.WAITING:
            what = "has a node and waits for Permit"
        case _:
            what = "has a node and is being bound"
    return f"{found.key} {what} ({tried})"
