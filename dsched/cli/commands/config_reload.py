"""``dsched config reload``: have every leader read its configuration file again, and see what came of it."""

from typing import Annotated

import msgspec
import typer

from dsched.cli import console, forms, options
from dsched.cli.configured import ProcessStatus, processes, restarts, troubles
from dsched.clock import Clock, SystemClock
from dsched.errors import DschedError
from dsched.state import client, leaders, lease, workers
from dsched.state.client import Store

LOOK_EVERY_S = 0.1


class Reloaded(msgspec.Struct, frozen=True):
    """
    Attributes:
        config: hash of the leader's configuration, None while nobody leads.
        done: whether every leader has read its file, none refused it, and all processes have the same configuration;
            what a file changes that only a restart takes up does not count.
    """

    done: bool
    config: str | None
    processes: list[ProcessStatus]


def reload(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for all processes.")] = 30.0,
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Have leaders and standbys read their configuration files again; exit code 1 when one is refused, or when not all
    processes have the leader's configuration in time.

    What is refused changes nothing: the last good configuration stays. Workers take up the leader's by themselves.
    """
    store = options.open_store(redis_url, data_dir, name)
    found = wait(store, SystemClock(), timeout)
    if output is forms.Answer.JSON:
        console.write(forms.as_json(found))
    else:
        for line in _lines(found):
            console.out.out(line)
    for line in troubles(found.processes):
        console.err.print(f"error: {line}", style="red", markup=False)
    for line in restarts(found.processes):
        console.err.print(f"note: {line}", markup=False)
    if not found.done:
        raise typer.Exit(1)


def wait(store: Store, clock: Clock, timeout_s: float) -> Reloaded:
    """Ask, and wait for what comes of it; at once when a leader refuses.

    Raises:
        DschedError: no leader process runs.
        RedisUnavailable: Redis does not answer.
    """
    if not any(not each.silent(clock.now_ms()) for each in leaders.read(store)):
        raise DschedError("no leader runs, so there is nobody to reload; a leader reads its file when it starts")
    number = leaders.ask_reload(store)
    deadline = clock.monotonic() + timeout_s
    while True:
        now_ms = clock.now_ms()
        alive = [each for each in leaders.read(store) if not each.silent(now_ms)]
        answered = [each for each in alive if each.reload >= number]
        with client.reachable(store):
            held = lease.holder(store)
            working = [each for each in workers.read(store) if not each.silent(now_ms)]
        found = processes(alive, working, None if held is None else held[0], now_ms)
        leading = next((each for each in alive if held is not None and each.identity == held[0]), None)
        everybody = leading is not None and bool(answered) and len(answered) == len(alive)
        refused = any(each.error for each in answered)
        stuck = any(each.trouble for each in working)
        done = everybody and not refused and not stuck and all(each.same for each in found)
        if done or (everybody and refused) or clock.monotonic() >= deadline:
            return Reloaded(done, None if leading is None else leading.config, found)
        clock.sleep(LOOK_EVERY_S)


def _lines(found: Reloaded) -> list[str]:
    if found.done:
        return [f"configuration {found.config} in {len(found.processes)} processes"]
    return [f"{each.name}: {each.config}" + ("" if each.same else " (not the leader's)") for each in found.processes]
