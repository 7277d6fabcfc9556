"""Redis takes no more writes from some command on, whichever that is: its memory is full, until somebody makes room."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from redis.connection import AbstractConnection

from dsched.errors import DschedError
from dsched.state import client
from dsched.state.client import Store
from tests.attacks.attack import Stand, attack
from tests.attacks.contents import StartsOver, stepped
from tests.attacks.failover import Walk

EXPECTED = (DschedError, StartsOver, *client.UNAVAILABLE)
"""What processes go on after: they begin again."""


@contextlib.contextmanager
def refusing(store: Store, after: int) -> Iterator[None]:
    """Commands that write are refused once so many have been sent, by anybody in this process."""
    switch = client.connect(store.url, "switch")  # connected by now, so that it sends nothing that is counted
    send, left = AbstractConnection.send_packed_command, after

    def counted(connection: Any, *arguments: Any, **options: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            switch.redis.config_set("maxmemory", 1)
        send(connection, *arguments, **options)

    with patch.object(AbstractConnection, "send_packed_command", counted):
        try:
            yield
        finally:
            left = 0
            switch.redis.config_set("maxmemory", 0)
    switch.close()


@attack(
    "Redis has no memory left from any command on, in the middle of whatever is being done",
    sees="nothing is scheduled or applied until there is room; then each pod is bound once, and nothing is half done",
)
def from_any_command_on(stand: Stand) -> None:
    stepped(stand)
    walk = Walk(stand, all_of_it=False)
    for _ in range(max(1, stand.rounds // 4)):
        for _ in range(walk.rng.randrange(10)):
            walk.step()
        with refusing(walk.rig.store, after=walk.rng.randrange(1, 60)):
            for _ in range(walk.rng.randrange(1, 15)):
                with contextlib.suppress(*EXPECTED):
                    walk.step()
        walk.rest()
        walk.check()
