"""Walks all commands: each has an example, and docs/commands.md says of each what its exit codes and forms are."""

import inspect
import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest

from dsched.cli import lazy
from dsched.cli.main import COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
LISTINGS = {
    *("get", "status", "queue show", "queue position", "top", "fsck", "explain pod", "config reload", "config check"),
    *("describe pod", "describe node", "apply", "delete", "up", "down"),
}
"""What answers with a list or a state: scripts want it as JSON."""


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group, by the words that one types."""
    below = getattr(command, "commands", None)
    if not below:
        yield name, command
        return
    for word, each in below.items():
        yield from leaves(f"{name} {word}", each)


LEAVES = {path: command for name, source in COMMANDS.items() for path, command in leaves(name, lazy.load(name, source))}
ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[1:]]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `") and len(cells := line.strip("|").split("|")) == 4
}


def options(command: Any) -> dict[str, Any]:
    return {option: parameter for parameter in command.params for option in parameter.opts}


def takes_json(command: Any) -> bool:
    """Read from the function itself: what options look like inside differs between versions of typer."""
    function = inspect.unwrap(command.callback)
    kinds = [
        typing.get_args(hint)[0]
        for hint in typing.get_type_hints(function, include_extras=True).values()
        if typing.get_origin(hint) is Annotated and "-o" in (getattr(hint.__metadata__[0], "param_decls", None) or ())
    ]
    found = [each for kind in kinds for each in (typing.get_args(kind) or (kind,))]
    return any("json" in [str(member) for member in each] for each in found if isinstance(each, type(StrEnum)))


def test_there_are_commands_to_walk() -> None:
    assert {"up", "queue drop", "config reload", "explain pod"} <= LEAVES.keys()


def test_the_page_has_every_command_and_no_other() -> None:
    assert ROWS.keys() == LEAVES.keys()


@pytest.mark.parametrize("path", LEAVES)
def test_a_command_shows_an_example(path: str) -> None:
    command = LEAVES[path]
    shown = f"{command.help}\n{command.epilog or ''}"
    assert "Example: " in shown
    assert f"dsched {path.removesuffix(' show')}" in shown


@pytest.mark.parametrize("path", LEAVES)
def test_the_page_says_what_code_1_means_and_which_forms_there_are(path: str) -> None:
    meaning, json, watch = ROWS[path]
    assert meaning
    assert (json == "yes") == takes_json(LEAVES[path])
    assert (watch == "yes") == ("--watch" in options(LEAVES[path]))


@pytest.mark.parametrize("path", sorted(LISTINGS))
def test_what_lists_something_can_do_so_as_json(path: str) -> None:
    assert takes_json(LEAVES[path])


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("dsched que", "queue"),
        ("dsched queue dr", "drop"),
        ("dsched config rel", "reload"),
        ("dsched top --on", "--once"),
    ],
)
def test_a_shell_completes(line: str, completed: str) -> None:
    """As bash asks, with the word that is being typed as the last one."""
    asked = {"_DSCHED_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert _run(asked).stdout.split() == [completed]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how(shell: str) -> None:
    told = _run({"_DSCHED_COMPLETE": f"source_{shell}"}).stdout
    assert "dsched" in told
    assert f"complete_{shell}" in told


def _run(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """The program itself: the name of the variable comes from the name that it is called by."""
    program = Path(sys.executable).parent / "dsched"
    done = subprocess.run(
        [program], env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done
