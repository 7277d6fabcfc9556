"""What the leader emulates, for processes that decide nothing but count what pods take up: they count as it does."""

from dsched import emulation
from dsched.config.feature_gates import DEFAULT, Features
from dsched.framework import counting
from dsched.state import client, leader_config
from dsched.state.client import Store


def read(store: Store) -> Features:
    """As it has published last; the default before the first leader.

    Raises:
        ConfigError: the leader is of a newer release, and emulates what is not known here.
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        told = leader_config.read(store)
    return DEFAULT if told is None else emulation.read(told.version, told.gates)


def follow(store: Store) -> Features:
    """Count as the leader does from now on, in this process; raises as `read`."""
    found = read(store)
    counting.emulate(found)
    return found
