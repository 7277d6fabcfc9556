"""``dsched pause``, ``dsched resume``, ``dsched drain``: stop trying pods, of one profile or of all, and go on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dsched.cli import console, forms, options
from dsched.clock import Clock, SystemClock
from dsched.errors import DschedError
from dsched.observe.words import paused_lines, titled
from dsched.scheduler.ports import QueueName
from dsched.state import client, lease, pauses
from dsched.state.client import Store
from dsched.state.pauses import EVERYTHING, Paused
from dsched.state.places import Places

LOOK_EVERY_S = 0.1
MOVING = (QueueName.INFLIGHT, QueueName.WAITING, QueueName.RESERVED)
"""Where pods stand that are being decided or have a node and are not bound yet."""


Profile = Annotated[
    str | None,
    typer.Option("--profile", help="Only pods of this schedulerName (default: of all).", show_default=False),
]
Reason = Annotated[str, typer.Option("--reason", help="Shown beside it, e.g. by dsched status.", show_default=False)]


class Answer(msgspec.Struct, frozen=True):
    """
    Attributes:
        changed: whether anything was paused, or resumed, that was not before.
        paused: what is paused now; profile ``*`` stands for all of them.
        moving: pods that are being decided, held back by Permit, or bound; pausing does not stop these.
    """

    changed: bool
    paused: Sequence[Paused]
    moving: Mapping[str, int]


class Drained(msgspec.Struct, frozen=True):
    """Whether nothing is on its way any more, and what still is."""

    drained: bool
    moving: Mapping[str, int]


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command(epilog='Example: dsched pause --profile batch --reason "quota review"')(pause)
    app.command(epilog="Example: dsched resume --profile batch")(resume)
    app.command(epilog="Example: dsched drain --timeout 120 && dsched down")(drain)


def pause(
    profile: Profile = None,
    reason: Reason = "",
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Stop trying pods, of all profiles or of one, until 'dsched resume'.

    Pods are still taken in and wait in their order; those that are being decided or bound go on. It outlives leaders.
    Pausing twice changes nothing.
    """
    store = options.open_store(redis_url, data_dir, name)
    wanted = EVERYTHING if profile is None else pauses.known(store, profile)
    changed = pauses.pause(store, wanted, SystemClock().now_ms(), reason)
    _print(Answer(changed, pauses.read(store), moving(store)), output, "paused" if changed else "paused already")


def resume(
    profile: Profile = None,
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Go on trying pods: with everything that is paused, or with one profile."""
    store = options.open_store(redis_url, data_dir, name)
    wanted = EVERYTHING if profile is None else profile
    was = pauses.resume(store, wanted)
    if not was and wanted != EVERYTHING:  # a profile that is paused may be gone from the configuration since
        pauses.known(store, wanted)
    told = f"resumed: {', '.join(map(titled, was))}" if was else "nothing to resume"
    _print(Answer(bool(was), pauses.read(store), moving(store)), output, told)


def drain(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait.")] = 300.0,
    reason: Reason = "drain",
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Pause everything and wait until no pod is being decided, held back by Permit, or bound; exit code 1 when the time
    is up first.

    Meant for the moment before an upgrade. It stays paused in either case, until 'dsched resume'.
    """
    store = options.open_store(redis_url, data_dir, name)
    pauses.pause(store, EVERYTHING, SystemClock().now_ms(), reason)
    with _progress() as show:
        left = wait(store, SystemClock(), timeout, show)
    drained = not any(left.values())
    if output is forms.Answer.JSON:
        console.write(forms.as_json(Drained(drained, left)))
    elif drained:
        console.out.out("drained: nothing is on its way; scheduling stays paused until 'dsched resume'")
    if not drained:
        with client.reachable(store):
            nobody = lease.holder(store) is None
        why = "nobody leads, so nothing ends; start a leader" if nobody else "scheduling stays paused; wait longer"
        console.err.print(
            f"not drained after {timeout:g}s: {counted(left)}; {why}, or go on with 'dsched resume'",
            style="red",
            markup=False,
        )
        raise typer.Exit(1)


def wait(
    store: Store, clock: Clock, timeout_s: float, show: Callable[[Mapping[str, int]], None] = lambda left: None
) -> Mapping[str, int]:
    """Wait until nothing is on its way; returns what still is when the time is up. ``show`` is called after each look.

    Raises:
        DschedError: somebody has resumed meanwhile.
    """
    deadline = clock.monotonic() + timeout_s
    while True:
        left = moving(store)
        show(left)
        if not any(left.values()):
            return left
        if not any(each.profile == EVERYTHING for each in pauses.read(store)):
            raise DschedError("somebody has resumed scheduling meanwhile; run 'dsched drain' again")
        rest = deadline - clock.monotonic()
        if rest <= 0:
            return left
        clock.sleep(min(LOOK_EVERY_S, rest))


def moving(store: Store) -> dict[str, int]:
    """How many pods are on their way, by place.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    counts = Places(store).counts()
    return {place.value: counts[place] for place in MOVING}


def counted(left: Mapping[str, int]) -> str:
    """How many are on their way, in words."""
    return ", ".join(f"{count} {place}" for place, count in left.items())


def _print(answer: Answer, output: forms.Answer, told: str) -> None:
    if output is forms.Answer.JSON:
        console.write(forms.as_json(answer))
        return
    console.out.out(told)
    for line in paused_lines(answer.paused, SystemClock().now_ms()):
        console.out.out(f"  paused: {line}")
    if any(answer.moving.values()) and answer.paused:
        console.out.out(f"  still on their way: {counted(answer.moving)}")


@contextmanager
def _progress() -> Iterator[Callable[[Mapping[str, int]], None]]:
    """A bar on the terminal: of the most that were on their way, how many no longer are."""
    if not console.err.is_terminal:
        yield lambda left: None
        return
    with Progress(BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console.err) as progress:
        task, most = progress.add_task("draining"), 0

        def show(left: Mapping[str, int]) -> None:
            nonlocal most
            still = sum(left.values())
            most = max(most, still)
            progress.update(task, completed=most - still, total=most or 1, description=counted(left))

        yield show
