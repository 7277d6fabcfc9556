"""``dsched redis-url``: where the system's Redis is, for ``redis-cli -u``."""

import typer

from dsched.cli.options import DataDir, Name, RedisUrl
from dsched.state import address


def redis_url(redis_url: RedisUrl = None, data_dir: DataDir = None, name: Name = None) -> None:
    """Print the URL of the system's Redis, password included.

    Example: redis-cli -u "$(dsched redis-url)" ZRANGE 'dsched:{default}:queue:active' 0 -1
    """
    typer.echo(address.find(redis_url, data_dir, name).redis_url)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("redis-url")(redis_url)
