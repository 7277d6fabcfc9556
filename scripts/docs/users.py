"""Writes the Redis users of deploy/redis and their table in security.md from what each needs.

Redis 7 tells reading from writing a key, and which commands a key may be used with (selectors). Redis 6.2 does neither:
there a user has all of its commands for all of its keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.docs.declared import DOCS, ROOT

PAGE = DOCS / "security.md"
FOLDER = ROOT / "deploy" / "redis"
FILES = {6: FOLDER / "users.acl", 7: FOLDER / "users-7.acl"}
BEGIN, END = "<!-- users: begin -->\n", "<!-- users: end -->\n"

READ, WRITE, BOTH = "%R~", "%W~", "~"
_ACCESS = {READ: "read", WRITE: "write, not read", BOTH: "read and write"}
ANY = "*"
"""Every key of dsched."""

CONNECTED = (
    *("multi", "exec", "discard", "time", "hello", "auth", "ping", "select"),
    *("client|setname", "client|getname", "client|id"),
)
"""What every connection needs; none of it is about a key."""
# A script runs with its user's rights: each command in it is checked as if it had been sent by itself. But with Redis 7
# each key that it is given counts as one that it reads and writes.


@dataclass(frozen=True)
class Grant:
    """
    Attributes:
        what: for people; empty where the other columns say it.
        keys: patterns, without the prefix.
        access: READ, WRITE or BOTH.
        commands: names, and categories with ``@``.
    """

    keys: Sequence[str]
    access: str
    commands: Sequence[str]
    what: str = ""


@dataclass(frozen=True)
class User:
    """
    Attributes:
        more: commands that are about no key, besides `CONNECTED`.
        still: what harm it can do by its rights, on Redis 6.2 and on Redis 7.
    """

    name: str
    grants: Sequence[Grant]
    more: Sequence[str]
    still: tuple[str, str]


def _grant(keys: str, access: str, commands: str, what: str = "") -> Grant:
    return Grant(keys.split(), access, commands.split(), what)


def _celery(kind: str) -> list[Grant]:
    return [
        _grant(f"celery:{kind}*", BOTH, "brpop lpush llen", "its queues"),
        _grant("celery:_kombu.*", BOTH, "sadd srem smembers exists", "Celery's names of queues"),
    ]


SIGN_OF_LIFE = _grant("workers", BOTH, "hgetall hset hsetnx hdel", "its sign of life, and the others'")

USERS = (
    User(
        "leader",
        [_grant(ANY, BOTH, "@read @write -@dangerous evalsha")],
        ("script|load", "info", "bgrewriteaof"),
        ("everything that dsched does, and nothing dangerous (no `FLUSHALL`, `KEYS`, `CONFIG`)",) * 2,
    ),
    User(
        "evaluator",
        [
            _grant("nodes:log", READ, "xrange", "the node table"),
            _grant("leader leader:configuration", READ, "get", "who leads, with which configuration"),
            _grant("replies:*", WRITE, "rpush expire", "answers"),
            SIGN_OF_LIFE,
            *_celery("evaluator"),
        ],
        (),
        (
            "as with Redis 7; let the lease, the node log, the configuration or a queue of evaluators expire "
            "(`EXPIRE`), which costs a takeover, a whole table, or a shard that the leader judges; put a value of "
            "another type where there is none, which the leader clears within 2 s",
            "answer wrongly or not at all, also in the name of another evaluator; hide or invent workers in the list "
            "until they show the next sign of life; take or add messages of evaluators",
        ),
    ),
    User(
        "binder",
        [
            _grant("leader leader:epoch leader:configuration", READ, "get", "who leads, with which configuration"),
            _grant("reservations", BOTH, "hget hmget hset", "that it binds"),
            _grant("bind:results", WRITE, "xadd", "what became of binds"),
            SIGN_OF_LIFE,
            _grant("cluster:*", READ, "get hget hmget hexists hscan hgetall lindex lrange xrange xrevrange", "objects"),
            _grant("cluster:version", BOTH, "incrby"),
            _grant("cluster:id", BOTH, "setnx"),
            _grant("cluster:log", WRITE, "xadd"),
            _grant("cluster:pods:st* cluster:persistentvolume*", BOTH, "hset hdel", "binds, status, volumes"),
            _grant("cluster:resourceclaims", BOTH, "hset hdel", "claims for devices"),
            _grant("cluster:pods", BOTH, "hset", "the claim of a pod's extended resources"),
            _grant("cluster:events:*", BOTH, "lpush lset ltrim expire", "events"),
            _grant("devices", READ, "hget", "which devices a pod holds"),
            _grant("leader:epoch reservations devices cluster:*", BOTH, "evalsha", "scripts about these"),
            *_celery("binder"),
        ],
        ("script|load",),
        (
            "as with Redis 7; write the objects of every kind in standalone mode; count `leader:epoch` up (`INCRBY`) "
            "or let keys in its reach expire, which costs a takeover; put a value of another type where there is none",
            "write reservations, and so bind any pending pod to any node; say wrongly what became of binds, which the "
            "leader looks up in the cluster; in standalone mode change pods, volumes and claims",
        ),
    ),
    User(
        "operator",
        [
            _grant(ANY, READ, "@read -@dangerous"),
            _grant(ANY, BOTH, "evalsha", "scripts"),
            _grant(
                "cluster:* control:* replies:* recorder recording",
                BOTH,
                "@read @write -@dangerous",
                "objects; what commands ask of the leader",
            ),
        ],
        ("script|load", "info"),
        ("as the leader", "apply and delete objects, pause, ask the leader for something, record"),
    ),
    User(
        "viewer",
        [_grant(ANY, READ, "@read -@dangerous"), _grant(ANY, BOTH, "evalsha", "scripts that only read")],
        ("script|load", "info"),
        ("read everything",) * 2,
    ),
)


def acl(version: int) -> str:
    """The text of a file for Redis of a version, 6 or 7."""
    lines = [_line_7(user) if version >= 7 else _line_6(user) for user in USERS]
    return "\n".join(["user default off", *lines]) + "\n"


def _pattern(key: str) -> str:
    return f"dsched:{{*}}:{key}"


def _signed(commands: Sequence[str]) -> str:
    return " ".join(name if name.startswith("-") else f"+{name}" for name in commands)


def _line_6(user: User) -> str:
    patterns = dict.fromkeys(_pattern(key) for grant in user.grants for key in grant.keys)
    if _pattern(ANY) in patterns:
        patterns = {_pattern(ANY): None}
    named = list(dict.fromkeys(name for grant in user.grants for name in grant.commands))
    named.sort(key=lambda name: "+@-".index(name[0]) if name[0] in "@-" else 3)
    keys = " ".join(f"~{pattern}" for pattern in patterns)
    return f"{_head(user)} {keys} resetchannels -@all {_signed([*dict.fromkeys((*named, *user.more, *CONNECTED))])}"


def _line_7(user: User) -> str:
    chosen = [
        f"({' '.join(grant.access + _pattern(key) for key in grant.keys)} {_signed(grant.commands)})"
        for grant in user.grants
    ]
    more = _signed(tuple(dict.fromkeys((*user.more, *CONNECTED))))
    return f"{_head(user)} resetchannels -@all {more} {' '.join(chosen)}"


def _head(user: User) -> str:
    return f"user {user.name} on >change-me-{user.name}"


def table() -> str:
    """What each user can do, as Markdown tables."""
    rows = ["| user | keys | may, with Redis 7 | by | for |", "|---|---|---|---|---|"]
    for user in USERS:
        for grant in user.grants:
            keys = ", ".join(f"`{key}`" for key in grant.keys)
            rows.append(f"| `{user.name}` | {keys} | {_access(grant)} | {_named(grant.commands)} | {grant.what} |")
    rows += ["", "| user | can still, with Redis 7 | can still, with Redis 6.2 |", "|---|---|---|"]
    rows += [f"| `{user.name}` | {user.still[1]} | {user.still[0]} |" for user in USERS]
    return "\n".join(rows) + "\n"


def _access(grant: Grant) -> str:
    return "run scripts with" if tuple(grant.commands) == ("evalsha",) else _ACCESS[grant.access]


def _named(commands: Sequence[str]) -> str:
    return " ".join(f"`{name.upper() if name[0] not in '@-' else name}`" for name in commands)


def page(text: str) -> str:
    """The page with its tables brought up to date."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page(PAGE.read_text()), **{file: acl(number) for number, file in FILES.items()}}
