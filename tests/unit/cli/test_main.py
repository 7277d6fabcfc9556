"""The list of commands: the same whether commands are imported or not, and nothing imported that is not needed."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import dsched
from dsched import __version__
from dsched.cli import lazy
from dsched.cli.main import COMMANDS, app

HEAVY = ("numpy", "celery", "kombu", "prometheus_client", "dsched.framework", "dsched.leader", "dsched.plugins")


def imported_by(*words: str, of: tuple[str, ...] = HEAVY) -> list[str]:
    """Which of these modules a command line imports."""
    script = (
        "import json, sys\n"
        "from dsched.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('\\n' + json.dumps([name for name in {of!r} if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["healthcheck", "--help"], ["status", "--help"], ["redis-url", "--help"]],
    ids=" ".join,
)
def test_a_command_imports_only_what_it_needs(words):
    assert imported_by(*words) == []


def test_apply_imports_nothing_that_only_other_commands_need():
    others = ("dsched.config", "dsched.arithmetic", "dsched.cli.render.columns", "rich.progress")
    assert imported_by("apply", "--help", of=others) == []


@pytest.mark.parametrize("name", ["up", "down", "get"])
def test_what_starts_a_system_and_what_shows_objects_build_no_plugins(name):
    # Of the options of a leader, its mode is in the leader's room, which imports nothing itself.
    heavy = [each for each in HEAVY if each not in ("dsched.leader", "dsched.framework")]
    assert imported_by(name, "--help", of=(*heavy, "dsched.leader.main", "dsched.framework.table")) == []


def test_the_redis_client_is_loaded_without_opentelemetry_which_can_be_loaded_afterwards():
    script = (
        "import sys\nimport dsched.state.client\n"
        "assert 'redis' in sys.modules and 'opentelemetry' not in sys.modules\n"
        "import opentelemetry.sdk.metrics\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_measure_sees_what_a_heavy_command_imports():
    assert "numpy" in imported_by("simulate", "--help")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_list_says_of_a_command_what_the_command_says(name):
    command = lazy.load(name, COMMANDS[name])
    paragraph = inspect.cleandoc(command.help).split("\n\n")[0]
    assert COMMANDS[name].help == " ".join(paragraph.split())
    assert command.name == name


def test_every_command_that_the_modules_have_is_in_the_list():
    registered = set()
    for module in {source.module for source in COMMANDS.values()}:
        holder = typer.Typer()
        __import__(module)
        sys.modules[module].register(holder)
        registered |= set(typer.main.get_group(holder).commands)
    assert registered == set(COMMANDS)


def test_help_lists_every_command():
    told = CliRunner().invoke(app, ["--help"]).output
    assert [name for name in COMMANDS if f" {name} " not in told] == []


def test_a_misspelt_command_is_answered_with_the_one_that_is_meant():
    done = CliRunner().invoke(app, ["healthchek"])
    assert done.exit_code == 2
    assert "healthcheck" in done.output


def test_the_version_with_the_commit_of_the_checkout():
    root = Path(dsched.__file__).parents[1]
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    done = CliRunner().invoke(app, ["--version"])
    assert re.fullmatch(rf"dsched {__version__} \(commit {commit.strip()}(-dirty)?\)\n", done.output)


def test_the_version_with_the_commit_that_was_written_when_the_image_was_built(tmp_path):
    """As with ``DSCHED_REVISION``: a package outside of a checkout, with a file."""
    package = tmp_path / "dsched"
    package.mkdir()
    package.joinpath("__init__.py").write_text(Path(dsched.__file__).read_text())

    def commit():
        words = [sys.executable, "-c", "import dsched; print(dsched.__file__, dsched.__commit__)"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        file, _, found = done.stdout.strip().partition(" ")
        assert Path(file).parent == package
        return found

    assert commit() == ""
    package.joinpath("commit.txt").write_text("4f2a\n")
    assert commit() == "4f2a"


@pytest.mark.parametrize(
    ("line", "offered"),
    [("dsched healthc", "healthcheck"), ("dsched explain po", "pod"), ("dsched queue req", "requeue")],
)
def test_shells_complete_commands_and_those_of_groups(line, offered):
    variables = {"_DSCHED_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert offered in CliRunner().invoke(app, [], env=variables, prog_name="dsched").output.splitlines()


def test_what_stands_in_brackets_is_shown() -> None:
    """Help is written in Rich's markup, which takes them for its own."""
    assert "pip install 'dsched[ui]'" in CliRunner().invoke(app, ["ui", "--help"]).output


@pytest.mark.parametrize(
    "words",
    [("conformance", ""), ("replay", ""), ("bench", "scheduler-perf", ""), ("status", "--data-dir", "")],
    ids=" ".join,
)
def test_an_empty_path_is_not_the_current_folder(words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 2
    assert "names no file" in done.output
