"""``dsched leader``: ``--write-config-to``, which needs no Redis and no cluster; options, as ``/flagz`` has them."""

import logging
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner, Result

from dsched.cli.commands import leader
from dsched.cli.main import app
from dsched.errors import ConfigError, DschedError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings from outside; the command's log handler goes with the test."""
    for name in ("DSCHED_CONFIG", "DSCHED_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    before, level = root.handlers, root.level
    yield
    root.handlers = before
    root.setLevel(level)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)


def test_the_completed_configuration_is_written_and_nothing_is_started(tmp_path: Path) -> None:
    file, written = tmp_path / "scheduler.yaml", tmp_path / "written.yaml"
    file.write_text(HEAD + "parallelism: 3\npercentageOfNodesToScore: 50\n")
    written.write_text("what stood there before, and is longer than nothing\n" * 1000)
    done = run("leader", "--config", file, "--redis-url", "redis://127.0.0.1:1", "--write-config-to", written)
    assert (done.exit_code, done.stdout) == (0, "")
    assert written.read_text() == run("config", "view", "--config", file).stdout
    again = tmp_path / "again.yaml"
    assert run("leader", "--config", written, "--write-config-to", again).exit_code == 0
    assert again.read_text() == written.read_text()


def test_the_default_one_is_written_with_what_its_percentage_means(tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"
    assert run("leader", "--write-config-to", written).exit_code == 0
    assert written.read_text() == run("config", "view").stdout
    assert "\n# percentageOfNodesToScore is not set: " in written.read_text()


def test_a_file_that_is_refused_is_not_written(tmp_path: Path) -> None:
    file, written = tmp_path / "scheduler.yaml", tmp_path / "written.yaml"
    file.write_text(HEAD + "parallelism: -1\n")
    with pytest.raises(ConfigError, match="parallelism"):
        run("leader", "--config", file, "--write-config-to", written)
    assert not written.exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DschedError, match=r"--write-config-to: .*/none/w\.yaml cannot be written: No such file"):
        run("leader", "--write-config-to", tmp_path / "none" / "w.yaml")


class Mode(StrEnum):
    LOCAL = "local"


def flags(*words: str, **environ: str) -> dict[str, str]:
    app = typer.Typer()
    found: dict[str, str] = {}

    @app.command()
    def made(
        context: typer.Context,
        where: str,
        redis_url: Annotated[str | None, typer.Option("-u", "--redis-url", envvar="URL")] = None,
        file: Annotated[Path | None, typer.Option("--config")] = None,
        mode: Annotated[Mode, typer.Option("--mode")] = Mode.LOCAL,
        lease: float = 3.0,
        detach: bool = False,
        gates: Annotated[list[str] | None, typer.Option("--feature-gates")] = None,
    ) -> None:
        found.update(leader.given_flags(context))

    result = CliRunner().invoke(app, ["here", *words], env=environ, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


def test_defaults_are_told_and_nothing_else() -> None:
    assert flags() == {
        "redis-url": "",
        "config": "",
        "mode": "local",
        "lease": "3.0",
        "detach": "false",
        "feature-gates": "",
    }


def test_what_was_given_is_told() -> None:
    told = flags("--config", "/a/b.yaml", "--lease", "1.5", "--detach")
    assert (told["config"], told["lease"], told["detach"]) == ("/a/b.yaml", "1.5", "true")
    told = flags("--feature-gates", "A=true", "--feature-gates", "B=false,C=true")
    assert told["feature-gates"] == "A=true,B=false,C=true"


def test_passwords_in_urls_are_hidden_whatever_they_come_from() -> None:
    assert flags("-u", "redis://leader:s3cr3t@h:1/0")["redis-url"] == "redis://leader:***@h:1/0"
    by_variable = flags(URL="redis+sentinel://:s3cr3t@h:1/state/0?sentinel_password=s3cr3t")
    assert by_variable["redis-url"] == "redis+sentinel://:***@h:1/state/0?sentinel_password=***"
