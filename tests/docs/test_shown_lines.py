"""Lines with ``dsched`` that cannot be run on a machine alone, in ``sh`` blocks and indented ones, are no less right:
the commands and options in them exist, and so do the files of the checkout that they name."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dsched.cli import lazy
from dsched.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/**/README.md")),
    *sorted(ROOT.glob("deploy/**/*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "tests" / "README.md",
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4,}(dsched .*)$", re.MULTILINE)
BETWEEN = {"&&", "||", "|", ";", "&", "--"}
"""Behind these words another command begins; ``--`` as in ``kubectl exec … -- dsched status``."""


def lines(page: Path) -> Iterator[str]:
    """Those that a reader may type and that no other test runs, continued lines as one."""
    text = page.read_text()
    for language, block in FENCED.findall(text):
        if language == "sh":
            yield from block.replace("\\\n", " ").splitlines()
    yield from INDENTED.findall(FENCED.sub("", text))


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each ``dsched`` in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in BETWEEN:
            words.append(word)
            continue
        while words and "=" in words[0]:  # variables for this command alone
            words.pop(0)
        if words and words[0] == "dsched":
            ends = [number for number, each in enumerate(words) if each in ("<", ">", ">>")]
            yield words[1 : min(ends, default=len(words))]
        words = []


def parsed(arguments: Sequence[str]) -> None:
    """Look commands and options up as the command line does, without running anything.

    Raises:
        Exception: there is no such command or option, or an argument is too many.
    """
    name, *rest = arguments
    if name == "--version":
        return
    assert name in COMMANDS, f"there is no command {name!r}"
    command: Any = lazy.load(name, COMMANDS[name])
    while inner := getattr(command, "commands", None):
        if rest and rest[0] in inner:
            command = inner[rest.pop(0)]
        else:
            assert name == "queue", f"dsched {name} has no command {rest[:1]}"
            command = inner["show"]
    context = command.make_context(name, [], resilient_parsing=True)
    context.resilient_parsing = False  # it was for the arguments that are missing; the parser would pass errors over
    _, surplus, _ = command.make_parser(context).parse_args(args=list(rest))
    assert not surplus, f"too many arguments: {surplus}"


SHOWN = [
    pytest.param(arguments, id=f"{page.name}: {' '.join(arguments)}")
    for page in PAGES
    for line in lines(page)
    if "dsched" in line
    for arguments in calls(line)
    if arguments
]


def test_there_are_lines_to_look_at() -> None:
    assert len(SHOWN) > 10


@pytest.mark.parametrize("arguments", SHOWN)
def test_commands_and_options_exist(arguments: list[str]) -> None:
    parsed(arguments)


@pytest.mark.parametrize("arguments", SHOWN)
def test_files_of_the_checkout_exist(arguments: list[str]) -> None:
    named = [word for word in arguments if word.startswith(("deploy/", "examples/", "docs/"))]
    assert [word for word in named if not (ROOT / word).exists()] == []


@pytest.mark.parametrize(
    "line",
    ["dsched stattus", "dsched up --detatch", "dsched config chek a.yaml", "dsched queue drop --all x", "dsched ui x"],
)
def test_a_wrong_line_is_noticed(line: str) -> None:
    (arguments,) = calls(line)
    with pytest.raises(Exception, match=r"no command|No such option|too many|no such option"):
        parsed(arguments)


def test_commands_are_found_wherever_they_stand_in_a_line() -> None:
    line = "A=1 dsched up -d && openssl rand 3 > token; kubectl exec x -- dsched status | jq . && dsched get po > out"
    assert list(calls(line)) == [["up", "-d"], ["status"], ["get", "po"]]
