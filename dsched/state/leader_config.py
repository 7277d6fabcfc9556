"""The configuration that the leader has, published for the workers: they take it up by themselves.

Written when a leader begins to lead, under its epoch. A file that holds private keys is not written to Redis; workers
find it where their own ``DSCHED_CONFIG`` says.
"""

import msgspec

from dsched.state import keys
from dsched.state.client import Store, WrongType
from dsched.state.scripts import Script


class LeaderConfig(msgspec.Struct, frozen=True):
    """
    Attributes:
        epoch: of the leader that has it.
        hash: of the configuration.
        cluster: what keeps the objects that it schedules: standalone or kubernetes.
        source: the file's name, for messages; empty for the default configuration.
        text: the file as it is; empty for the default configuration, and where it is withheld.
        withheld: why the text is not told, empty where it is.
        code: of whom the code is that carries it out there; empty where an older leader does not say.
        version, gates: of kube-scheduler, that is emulated, and its feature gates that were set, as
            `dsched.emulation.read` reads them; empty where an older leader does not say.
    """

    epoch: int
    hash: str
    cluster: str
    source: str = ""
    text: str = ""
    withheld: str = ""
    code: str = ""
    version: str = ""
    gates: str = ""


def publish(store: Store, published: LeaderConfig) -> None:
    """Tell the workers.

    Raises:
        StaleEpoch: another leader has taken over; nothing was told.
    """
    told = msgspec.json.encode(published).decode()
    Script(store, "config_publish")(keys.names(keys.EPOCH, keys.CONFIGURATION), [published.epoch, told])


def read(store: Store) -> LeaderConfig | None:
    """What the leader has told last; None before the first one, and where it cannot be read: the leader tells it anew.

    Raises:
        What `dsched.state.client.UNAVAILABLE` lists.
    """
    try:
        text = store.redis.get(store.key(keys.CONFIGURATION.name))
        return None if text is None else msgspec.json.decode(text, type=LeaderConfig)
    except (WrongType, msgspec.DecodeError, UnicodeDecodeError):
        return None
