"""What people tell the scheduler: whose pods are not to be tried for now.

It stands in Redis, so it outlives every leader, and the script that pops pods looks at it itself: from the moment that
`pause` returns on, no pod of those profiles is tried. Pods that are being decided or bound go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dsched.errors import NotFound
from dsched.model import raw
from dsched.state import client, keys, standings
from dsched.state.client import Store

EVERYTHING = "*"
"""Stands for all profiles; no ``schedulerName`` can be called so."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A profile whose pods are not tried, or EVERYTHING; since when in ms, and what was given as the reason."""

    profile: str
    since_ms: int
    reason: str = ""


def known(store: Store, profile: str) -> str:
    """The profile itself, to be paused.

    Raises:
        NotFound: the leader has said which profiles there are, and this is none of them.
        RedisUnavailable: Redis does not answer.
    """
    told = standings.moment(store).schedulers
    if not profile or (told is not None and profile not in told):
        raise NotFound(f"there is no profile {profile!r}; profiles are {', '.join(sorted(told or ())) or 'not known'}")
    return profile


def pause(store: Store, profile: str, now_ms: int, reason: str = "") -> bool:
    """Pause a profile, or EVERYTHING; False when it was paused already. A new reason replaces the one given before.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    name = store.key(keys.PAUSED.name)
    with client.reachable(store):
        new = bool(store.redis.hsetnx(name, profile, f"{now_ms} {reason}"))
        if not new and reason:
            since, _, _ = raw.text(store.redis.hget(name, profile)).partition(" ")
            store.redis.hset(name, profile, f"{since or now_ms} {reason}")
    return new


def resume(store: Store, profile: str) -> list[str]:
    """Go on with a profile; with EVERYTHING, with all that are paused one by one, too. Returns what was paused.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    name = store.key(keys.PAUSED.name)
    with client.reachable(store):
        pipe: Any = store.redis.pipeline(transaction=True)
        pipe.hkeys(name)
        if profile == EVERYTHING:
            pipe.delete(name)
        else:
            pipe.hdel(name, profile)
        before, _ = pipe.execute()
    was = sorted(map(raw.text, before))
    return was if profile == EVERYTHING else [each for each in was if each == profile]


def read(store: Store) -> list[Paused]:
    """What is paused now, by name.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        found = store.redis.hgetall(store.key(keys.PAUSED.name))
    return sorted(
        (parse(raw.text(each), raw.text(text)) for each, text in found.items()), key=lambda each: each.profile
    )


def profiles(store: Store) -> list[str]:
    """The profiles that are paused, EVERYTHING among them; for metrics.

    Raises:
        What `dsched.state.client.UNAVAILABLE` lists.
    """
    return sorted(raw.text(each) for each in store.redis.hkeys(store.key(keys.PAUSED.name)))


def parse(profile: str, text: str) -> Paused:
    """A pause from its text in Redis; what was set by hand in another form counts as paused, too."""
    since, _, reason = text.partition(" ")
    return Paused(profile, int(since), reason) if raw.is_whole(since) else Paused(profile, 0, text)


def holds(paused: Sequence[Paused], profile: str) -> bool:
    """Whether pods of this profile are not tried."""
    return any(each.profile in (EVERYTHING, profile) for each in paused)
