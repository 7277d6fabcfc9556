"""Every key of the standalone cluster: its name, type, members. ``docs/redis.md`` is checked against this list."""

from dsched.manifests import kinds
from dsched.state.keys import Key

ID = Key("cluster:id", "string", "random name of this cluster's history; another one means that the log was lost")
VERSION = Key("cluster:version", "string", "counter: each change of an object takes the next number")
LOG = Key(
    "cluster:log",
    "stream",
    "watch log, entry `VERSION-0` a change: change, kind, key, uid and object (JSON), node or status (JSON)",
)
STATE = Key(
    "cluster:pods:state",
    "hash",
    "`NS/NAME` to `UID NODE BOUND-AT-MS GATED DELETING PHASE VERSION`; `-` where there is nothing to say",
)
STATUS = Key(
    "cluster:pods:status",
    "hash",
    "`NS/NAME` of a pending pod to what the scheduler wrote: JSON with nominatedNodeName and conditions",
)
EVENTS = Key(
    "cluster:events:",
    "list",
    "`cluster:events:NS/NAME`, newest first, at most 20: `TYPE REASON COUNT FIRST-MS LAST-MS MESSAGE`; expires",
)


def objects(kind: kinds.Kind) -> Key:
    """The hash that holds the objects of a kind."""
    member = "NS/NAME" if kind.namespaced else "NAME"
    return Key(f"cluster:{kind.plural}", "hash", f"`{member}` to the {kind.name} as applied, JSON")


ALL = (ID, VERSION, LOG, STATE, STATUS, EVENTS, *(objects(kind) for kind in kinds.ALL))
