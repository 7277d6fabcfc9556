"""Where a running system is: ``system.json`` in its data folder, written by ``dsched up``, read by every command."""

import os
from pathlib import Path

import msgspec
import platformdirs

from dsched.errors import SystemNotFound

FILE = "system.json"
URL_FILE = "DSCHED_REDIS_URL_FILE"
"""Environment variable: a file that holds the URL, where a secret is mounted."""


class Address(msgspec.Struct, frozen=True):
    """A running system: its Redis, its name there, and the process id of its supervisor (0 where there is none)."""

    redis_url: str
    name: str = "default"
    supervisor_pid: int = 0


def default_data_dir() -> Path:
    """``DSCHED_DATA_DIR``, else a folder under the user's data folder."""
    configured = os.environ.get("DSCHED_DATA_DIR")
    return Path(configured) if configured else Path(platformdirs.user_data_dir("dsched"))


def write(data_dir: Path, address: Address) -> None:
    """Leave the address in the data folder, readable by its owner alone: the URL may carry a password."""
    path = data_dir / FILE
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(msgspec.json.encode(address))
    temporary.replace(path)


def remove(data_dir: Path) -> None:
    """Take the address back."""
    (data_dir / FILE).unlink(missing_ok=True)


def read(data_dir: Path) -> Address | None:
    """The address in the data folder, None where no system has left one.

    Raises:
        SystemNotFound: the file cannot be read.
    """
    try:
        return msgspec.json.decode((data_dir / FILE).read_bytes(), type=Address)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise SystemNotFound(f"the data folder {data_dir} is no folder; name another one with --data-dir") from error
    except (OSError, msgspec.DecodeError) as error:
        raise SystemNotFound(
            f"{data_dir / FILE} cannot be read ({error}); remove it and run dsched up again"
        ) from error


def find(redis_url: str | None, data_dir: Path | None, name: str | None) -> Address:
    """The system a command means: by its Redis URL, by the file that ``DSCHED_REDIS_URL_FILE`` names, else by its data
    folder.

    Raises:
        SystemNotFound: no URL is given and no system has left its address in the data folder, or the file that should
            hold the URL cannot be read.
    """
    redis_url = redis_url or _url_in_file()
    if redis_url:
        return Address(redis_url=redis_url, name=name or "default")
    folder = data_dir or default_data_dir()
    address = read(folder)
    if address is None:
        raise SystemNotFound(
            f"no dsched system runs with the data folder {folder}; start one with 'dsched up --detach', "
            "or name one with --data-dir or --redis-url"
        )
    return msgspec.structs.replace(address, name=name) if name else address


def _url_in_file() -> str:
    path = os.environ.get(URL_FILE)
    try:
        return Path(path).read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SystemNotFound(f"{path} ({URL_FILE}) cannot be read: {error}") from error
