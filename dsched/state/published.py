"""The configuration that the leader has, published for the workers: they take it up by themselves.

Written when a leader begins to lead, under its epoch. A file that holds private keys is not written to Redis; workers
find it where their own ``DSCHED_CONFIG`` says.
"""

from dataclasses import dataclass

import msgpack

from dsched.state import keys
from dsched.state.client import Store
from dsched.state.scripts import Script


@dataclass(frozen=True, slots=True)
class Published:
    """
    Attributes:
        epoch: of the leader that has it.
        hash: of the configuration.
        cluster: what keeps the objects that it schedules: standalone or kubernetes.
        source: the file's name, for messages; empty for the default configuration.
        text: the file as it is; empty for the default configuration, and where it is withheld.
        withheld: why the text is not told, empty where it is.
        code: of whom the code is that carries it out there; empty where an older leader does not say.
    """

    epoch: int
    hash: str
    cluster: str
    source: str = ""
    text: str = ""
    withheld: str = ""
    code: str = ""


def publish(store: Store, published: Published) -> None:
    """Tell the workers.

    Raises:
        StaleEpoch: another leader has taken over; nothing was told.
    """
    fields = {
        "epoch": str(published.epoch),
        "hash": published.hash,
        "cluster": published.cluster,
        "source": published.source,
        "text": published.text,
        "withheld": published.withheld,
        "code": published.code,
    }
    packed = msgpack.packb([item for pair in fields.items() for item in pair])
    Script(store, "config_publish")(keys.names(keys.EPOCH, keys.CONFIGURATION), [published.epoch, packed])


def read(store: Store) -> Published | None:
    """What the leader has told last, None before the first one.

    Raises:
        What `dsched.state.client.UNAVAILABLE` lists.
    """
    raw = store.redis.hgetall(store.key(keys.CONFIGURATION.name))
    fields = {name.decode(): value.decode() for name, value in raw.items()}
    if not fields:
        return None
    return Published(
        int(fields.get("epoch", "0")),
        fields.get("hash", ""),
        fields.get("cluster", ""),
        fields.get("source", ""),
        fields.get("text", ""),
        fields.get("withheld", ""),
        fields.get("code", ""),
    )
