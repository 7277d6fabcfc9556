"""Options that many commands share, and how they find the system they are about."""

from pathlib import Path
from typing import Annotated

import typer

from dsched.state import address, client

RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        envvar="DSCHED_REDIS_URL",
        help="The system's Redis: redis://, rediss:// or unix://.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="DSCHED_DATA_DIR",
        help="Folder of a system started by 'dsched up' (default: under the user's data folder).",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", envvar="DSCHED_NAME", help="The system's name on its Redis (default: default).", show_default=False
    ),
]


def open_store(redis_url: str | None, data_dir: Path | None, name: str | None) -> client.Store:
    """Connect to the system a command means.

    Raises:
        SystemNotFound: there is none at that address.
        RedisUnavailable: its Redis does not answer.
    """
    found = address.find(redis_url, data_dir, name)
    store = client.connect(found.redis_url, found.name)
    with client.reachable(store):
        store.redis.ping()
    return store
