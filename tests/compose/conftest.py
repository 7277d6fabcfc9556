"""One engine, and one image, for all tests here."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.engine import CACHE, Engine, NoEngine

REVISION = "0123456789abcdef0123456789abcdef01234567"
CREATED = "2026-01-02T03:04:05Z"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A container engine, started; skipped with the reason where none can run."""
    # In a short path, because of its socket.
    engine = Engine(Path(tempfile.mkdtemp(prefix="dsched-engine-")))
    try:
        engine.start()
    except NoEngine as error:
        shutil.rmtree(engine.folder, ignore_errors=True)
        pytest.skip(f"no container engine: {error}")
    plugin = CACHE / "docker-compose-plugin" / "docker-compose"
    if plugin.exists():
        plugins = engine.folder / "config" / "cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-compose").symlink_to(plugin)
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The image as ``make image`` builds it, with commit and date of a release."""
    engine.run(["make", "--no-print-directory", "image", f"REVISION={REVISION}", f"CREATED={CREATED}"])
    # Compose builds one of that name as well, from other arguments.
    engine.run(["docker", "tag", "dsched:0.1.0", "dsched:released"])
    return "dsched:released"
