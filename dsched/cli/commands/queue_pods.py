"""``dsched queue requeue``, ``drop`` and ``position``: about some pods of the queue."""

from typing import Annotated

import msgspec
import typer

from dsched.cli import choosing, console, forms, options
from dsched.clock import SystemClock
from dsched.errors import NotFound
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.observe.words import standing, titled
from dsched.scheduler.ports import QueueName
from dsched.state import pauses, position, requests
from dsched.state.pauses import EVERYTHING
from dsched.state.position import Position
from dsched.state.requests import Answer

TIMEOUT_S = 10.0


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
    app.command("drop", epilog="Example: dsched queue drop shop/web-1 && dsched queue gated")(drop)
    app.command("position", epilog="Example: dsched queue position shop/web-1 -o json")(place)


def requeue(
    words: Annotated[list[str] | None, typer.Argument(metavar="[NS/]POD…", show_default=False)] = None,
    all_unschedulable: Annotated[
        bool, typer.Option("--all-unschedulable", help="Every pod that is unschedulable.")
    ] = False,
    namespace: InNamespace = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the leader.")] = TIMEOUT_S,
    output: forms.Printed = forms.Answer.TEXT,
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
    _print(answer, output)
    for each in pauses.read(store):
        console.err.print(f"note: paused: {titled(each.profile)}, until 'dsched resume'", markup=False)
    if any(not each.done and each.place != QueueName.ACTIVE for each in answer.pods):
        raise typer.Exit(1)


def drop(
    words: Annotated[list[str], typer.Argument(metavar="[NS/]POD…", show_default=False)],
    namespace: choosing.Namespace = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the leader.")] = TIMEOUT_S,
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Take pods out of the queue: they stand among the gated ones and are not tried, whatever happens in the cluster.

    A dropped pod comes back when its spec or labels change, or with 'dsched queue requeue'; a new leader leaves it
    where it is. The pod itself is not touched. Exit code 1 when one that was named was not taken out: it is not
    pending, is being decided, or has a node already.
    """
    store = options.open_store(redis_url, data_dir, name)
    keys = [PodKey(key) for key in choosing.keys(kinds.POD, words, namespace)]
    answer = requests.ask(store, requests.DROP, timeout, keys)
    _print(answer, output)
    if any(not each.done for each in answer.pods):
        raise typer.Exit(1)


def _print(answer: Answer, output: forms.Answer) -> None:
    if output is forms.Answer.JSON:
        console.write(forms.as_json(answer))
    else:
        for line in lines(answer):
            console.out.out(line)


def lines(answer: Answer) -> list[str]:
    """The answer for people."""
    if answer.pods:
        return [f"{each.pod}: {each.message}" for each in answer.pods]
    return [f"{answer.done} pods put back into the active queue"]


def place(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]POD", show_default=False)],
    namespace: choosing.Namespace = None,
    output: forms.Printed = forms.Answer.TEXT,
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
    paused = pauses.read(store)
    if output is forms.Answer.JSON:
        told = Told(found, pauses.holds(paused, found.profile))
        console.write(forms.as_json(told))
        return
    console.out.out(sentence(found, SystemClock().now_ms()))
    if found.message:
        console.out.out(f"  last: {' '.join(found.message.split())}")
    for each in paused:
        if each.profile in (EVERYTHING, found.profile):
            console.out.out(f"  paused: {titled(each.profile)}")


def sentence(found: Position, now_ms: int) -> str:
    """Where a pod stands, in words."""
    return f"{found.key} {standing(found, now_ms)}"
