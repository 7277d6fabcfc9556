"""Reads Lua scripts as people do: what the header promises, and what the body uses."""

import re
from dataclasses import dataclass
from pathlib import Path

from dsched.state import scripts

_KEY = re.compile(r"^-- KEYS\[(\d+)\] (\S+)\s+(\S+)\s{2,}\S", re.MULTILINE)
_ARGUMENT = re.compile(r"^-- ARGV\[(\d+)\] (\w+)\s+(\S+)\s{2,}\S", re.MULTILINE)
_COMMENT = re.compile(r"--.*$", re.MULTILINE)
_CALL = re.compile(r"redis\.(\w+)\s*\(\s*([^,)]*)")


@dataclass(frozen=True)
class Named:
    """A key or an argument as the header has it."""

    number: int
    name: str
    type: str


class Source:
    """A script's file.

    Attributes:
        header: the comment lines that it opens with.
        body: everything else with the includes put in and the comments taken out.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        text = path.read_text()
        lines = text.splitlines()
        end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
        self.header = "\n".join(lines[:end])
        self.own_body = _COMMENT.sub("", "\n".join(lines[end:]))
        self.body = _COMMENT.sub("", scripts.read(path.parent, path.stem))

    @property
    def keys(self) -> list[Named]:
        return [Named(int(number), name, type_) for number, name, type_ in _KEY.findall(self.header)]

    @property
    def arguments(self) -> list[Named]:
        return [Named(int(number), name, type_) for number, name, type_ in _ARGUMENT.findall(self.header)]

    @property
    def takes_epoch(self) -> bool:
        return [argument.name for argument in self.arguments[:1]] == ["epoch"]

    def used(self, array: str) -> set[int]:
        """Numbers of the KEYS or ARGV that the body reads."""
        return {int(number) for number in re.findall(rf"\b{array}\[(\d+)\]", self.body)}

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Function of ``redis`` and first argument, by call."""
        return [(function, first.strip()) for function, first in _CALL.findall(self.body)]


def sources() -> list[Source]:
    """Every script of the state room."""
    return [Source(path) for path in sorted(scripts.FOLDER.glob("*.lua"))]
