"""Options by name, as they were given or are by default."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from dsched.cli import flags


class Mode(StrEnum):
    LOCAL = "local"


def run(*words: str, **environ: str) -> dict[str, str]:
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
        found.update(flags.given(context))

    result = CliRunner().invoke(app, ["here", *words], env=environ, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


def test_defaults_are_told_and_nothing_else() -> None:
    assert run() == {
        "redis-url": "",
        "config": "",
        "mode": "local",
        "lease": "3.0",
        "detach": "false",
        "feature-gates": "",
    }


def test_what_was_given_is_told() -> None:
    told = run("--config", "/a/b.yaml", "--lease", "1.5", "--detach")
    assert (told["config"], told["lease"], told["detach"]) == ("/a/b.yaml", "1.5", "true")
    told = run("--feature-gates", "A=true", "--feature-gates", "B=false,C=true")
    assert told["feature-gates"] == "A=true,B=false,C=true"


def test_passwords_in_urls_are_hidden_whatever_they_come_from() -> None:
    assert run("-u", "redis://leader:s3cr3t@h:1/0")["redis-url"] == "redis://leader:***@h:1/0"
    by_variable = run(URL="redis+sentinel://:s3cr3t@h:1/state/0?sentinel_password=s3cr3t")
    assert by_variable["redis-url"] == "redis+sentinel://:***@h:1/state/0?sentinel_password=***"
