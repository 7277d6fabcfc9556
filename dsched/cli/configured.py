"""Which process has which configuration: for ``dsched status`` and ``dsched config reload``."""

from collections.abc import Iterator, Sequence

import msgspec

from dsched.observe.words import duration
from dsched.state.leaders import LeaderNote
from dsched.state.workers import FORGOTTEN_AFTER_MS, Worker


class ProcessStatus(msgspec.Struct, frozen=True):
    """A process and its configuration.

    Attributes:
        kind: leader, evaluator or binder.
        state: a leader's stage (leading, taking over, standing by), ``working`` for a worker; ``silent`` for either
            where it has not been heard of for 10 s.
        config: hash of the configuration it has.
        same: whether that is the present leader's, None while nobody leads.
        cluster: what it takes to keep the objects; empty where an older one does not say.
        trouble: why it does not have the configuration that it should have, one line; empty where it has.
        seen_ms: when it was last heard of, ms since the epoch.
        restart: what its configuration file changes that only a restart takes up; that is no trouble.
    """

    name: str
    kind: str
    state: str
    config: str
    same: bool | None
    cluster: str
    trouble: str
    seen_ms: int
    restart: list[str] = []


def processes(
    leaders: Sequence[LeaderNote], workers: Sequence[Worker], leader: str | None, now_ms: int
) -> list[ProcessStatus]:
    """Every process that has been heard of lately, leaders first.

    Args:
        leader: identity of the one that leads, None where nobody does.
    """
    present = next((each.config for each in leaders if each.identity == leader), None)
    found = [
        ProcessStatus(
            each.identity,
            "leader",
            "silent" if each.silent(now_ms) else each.stage,
            each.config,
            None if present is None else each.config == present,
            each.cluster,
            f"configuration refused, {each.config} stays: {' '.join(each.error.split())}" if each.error else "",
            each.seen_ms,
            list(each.restart),
        )
        for each in leaders
        if now_ms - each.seen_ms <= FORGOTTEN_AFTER_MS
    ]
    found += [
        ProcessStatus(
            each.name,
            each.kind,
            "silent" if each.silent(now_ms) else "working",
            each.config,
            None if present is None else each.config == present,
            each.cluster,
            each.trouble,
            each.last_seen_ms,
        )
        for each in workers
        if now_ms - each.last_seen_ms <= FORGOTTEN_AFTER_MS
    ]
    return found


def rows(found: Sequence[ProcessStatus], now_ms: int) -> Iterator[tuple[str, ...]]:
    """A table, its head first."""
    yield "PROCESS", "KIND", "STATE", "CONFIG", "SEEN"
    for each in found:
        config = f"{each.config} (not the leader's)" if each.same is False else each.config
        seen = f"{duration((now_ms - each.seen_ms) / 1000)} ago"
        yield each.name, each.kind, each.state, config, seen


def troubles(found: Sequence[ProcessStatus]) -> list[str]:
    """A line for each process that does not have the configuration it should have."""
    return [f"{each.name}: {each.trouble}" for each in found if each.trouble]


def restarts(found: Sequence[ProcessStatus]) -> list[str]:
    """A line for each process whose configuration file changes something that only a restart takes up."""
    return [f"{each.name}: takes a restart: {', '.join(each.restart)}" for each in found if each.restart]
