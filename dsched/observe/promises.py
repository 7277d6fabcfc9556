"""Which devices reserved pods hold until their claims say so."""

from collections.abc import Mapping

from dsched.model.meta import PodKey, PodUid
from dsched.observe.devices import Promise
from dsched.state import client, devices, reservations
from dsched.state.client import Store


def read(store: Store, pods: Mapping[PodUid, PodKey] | None = None) -> list[Promise]:
    """What these pods hold, or all reserved ones.

    Raises:
        RedisUnavailable: Redis does not answer.
        StateError: a reservation is not one of ours.
    """
    with client.reachable(store):
        held, _ = devices.read_held(store)
        if held and pods is None:
            pods = {each.uid: each.key for each in reservations.read_reservations(store)}
    names = pods or {}
    return [
        Promise(names[uid], holder, amounts)
        for uid, holds in held.items()
        if uid in names
        for holder, amounts in holds.items()
    ]
