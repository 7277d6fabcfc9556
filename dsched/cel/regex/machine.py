"""A pattern as a machine that is in several of its steps at once, and looking for the pattern in a text with it: all
ways at once, a character at a time.

Go: ``regexp/syntax/compile.go``, ``regexp/exec.go``, ``regexp/regexp.go``.
"""

from dataclasses import dataclass
from typing import Protocol

from dsched.cel.regex.characters import Characters, PatternError
from dsched.cel.regex.parsing import Assertion, Choice, Repeat, Sequence, Tree

MAX_STEPS = 20_000
"""Steps of a program. RE2 allows more, for patterns that repeat long parts a thousand times."""
MAX_STATES = 2000
"""Sets of steps that a pattern keeps with what followed them."""

_MATCHED = -1
_NOTHING, _WORD, _NEWLINE, _OTHER = range(4)


@dataclass(slots=True)
class Instruction:
    """Attributes:
    takes: a character that it wants; None: it takes none.
    assertion: what has to hold around here.
    ways: where it goes on, the preferred one first; empty for the end of a match.
    """

    takes: Characters | None = None
    assertion: str | None = None
    ways: tuple[int, ...] = ()


def assemble(tree: Tree) -> list[Instruction]:
    """The program of a pattern; it begins at 0.

    Raises:
        PatternError: it would have too many steps.
    """
    assembler = _Assembler()
    assembler.add(tree)
    assembler.emit(Instruction())
    return assembler.program


class _Assembler:
    def __init__(self) -> None:
        self.program: list[Instruction] = []

    def emit(self, instruction: Instruction) -> int:
        if len(self.program) >= MAX_STEPS:
            raise PatternError("expression too large")
        self.program.append(instruction)
        return len(self.program) - 1

    @property
    def _here(self) -> int:
        return len(self.program)

    def add(self, tree: Tree) -> None:
        """Puts a part to the end of the program; what follows it is put behind."""
        if isinstance(tree, Characters):
            self.emit(Instruction(takes=tree, ways=(self._here + 1,)))
        elif isinstance(tree, Assertion):
            self.emit(Instruction(assertion=tree.kind, ways=(self._here + 1,)))
        elif isinstance(tree, Sequence):
            for part in tree.parts:
                self.add(part)
        elif isinstance(tree, Choice):
            self._choice(tree)
        else:
            self._repeat(tree)

    def _choice(self, tree: Choice) -> None:
        jumps = []
        for option in tree.options[:-1]:
            split = self.emit(Instruction())
            self.add(option)
            jumps.append(self.emit(Instruction()))
            self.program[split].ways = (split + 1, self._here)
        self.add(tree.options[-1])
        for jump in jumps:
            self.program[jump].ways = (self._here,)

    def _repeat(self, tree: Repeat) -> None:
        for _ in range(tree.least):
            self.add(tree.part)
        if tree.most is None:
            split = self.emit(Instruction())
            self.add(tree.part)
            self.emit(Instruction(ways=(split,)))
            self._split(split, tree.greedy)
            return
        splits = []
        for _ in range(tree.most - tree.least):
            splits.append(self.emit(Instruction()))
            self.add(tree.part)
        for split in splits:
            self._split(split, tree.greedy)

    def _split(self, split: int, greedy: bool) -> None:
        into, past = split + 1, self._here
        self.program[split].ways = (into, past) if greedy else (past, into)


class Meter(Protocol):
    """Counts the steps that looking for patterns takes."""

    def step(self, steps: int) -> None:
        """Takes steps; may end all with an exception."""


class Unmetered:
    """Counts nothing."""

    def step(self, steps: int) -> None:
        """Takes steps."""


_UNMETERED = Unmetered()


def _kind(character: str) -> int:
    if character == "\n":
        return _NEWLINE
    return _WORD if character == "_" or (character.isascii() and character.isalnum()) else _OTHER


class Pattern:
    """A pattern to be searched for."""

    def __init__(self, program: list[Instruction]) -> None:
        self._program = program
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[tuple[frozenset[int], int], int] = {}
        self._states: list[tuple[frozenset[int], int]] = []
        self._next: list[dict[str, int]] = []
        self._number(frozenset((0,)), _NOTHING)

    def _number(self, steps: frozenset[int], before: int) -> int:
        key = (steps, before)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._states)
            self._states.append(key)
            self._next.append({})
        return found

    def search(self, text: str, meter: Meter = _UNMETERED) -> bool:
        """Whether the pattern is anywhere in a text."""
        if len(self._states) > MAX_STATES:
            self._forget()
        state = 0
        for character in text:
            following = self._next[state].get(character)
            if following is None:
                following = self._follow(state, character, meter)
                if len(self._states) > 2 * MAX_STATES and following != _MATCHED:
                    steps, before = self._states[following]
                    self._forget()
                    state = self._number(steps, before)
                    continue
            if following == _MATCHED:
                return True
            state = following
        meter.step(len(text) // 64)
        steps, before = self._states[state]
        return any(not self._program[at].ways for at in self._reach(sorted(steps), before, _NOTHING, meter))

    def _follow(self, state: int, character: str, meter: Meter) -> int:
        steps, before = self._states[state]
        kind = _kind(character)
        reached = self._reach(sorted(steps), before, kind, meter)
        following = {0}
        for at in reached:
            instruction = self._program[at]
            if not instruction.ways:
                self._next[state][character] = _MATCHED
                return _MATCHED
            if instruction.takes is not None and instruction.takes.holds(character):
                following.add(instruction.ways[0])
        found = self._next[state][character] = self._number(frozenset(following), kind)
        return found

    def _reach(self, starts: list[int], before: int, after: int, meter: Meter) -> list[int]:
        """The steps that take a character or end a match and are reached without taking one, by preference."""
        seen: set[int] = set()
        found = [at for start in starts for at in self._reach_unseen(start, before, after, seen)]
        meter.step(len(seen))
        return found

    def find(self, text: str, start: int = 0, meter: Meter = _UNMETERED) -> tuple[int, int] | None:
        """Begin and end of the first match at or after ``start``; of matches that begin there, the preferred one."""
        threads: list[tuple[int, int]] = []
        matched: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            if matched is None:
                threads.append((0, at))
            before = _kind(text[at - 1]) if at else _NOTHING
            after = _kind(text[at]) if at < len(text) else _NOTHING
            threads, ended = self._advance(threads, text[at : at + 1], before, after, meter)
            if ended is not None:
                matched = ended, at
            if not threads and matched is not None:
                break
        return matched

    def _advance(
        self, threads: list[tuple[int, int]], character: str, before: int, after: int, meter: Meter
    ) -> tuple[list[tuple[int, int]], int | None]:
        """Threads, by preference, after a character; and where a match began that ends before it."""
        following: list[tuple[int, int]] = []
        seen: set[int] = set()
        for step, began in threads:
            for at in self._reach_unseen(step, before, after, seen):
                instruction = self._program[at]
                if not instruction.ways:
                    meter.step(len(seen))
                    return following, began
                if character and instruction.takes is not None and instruction.takes.holds(character):
                    following.append((instruction.ways[0], began))
        meter.step(len(seen))
        return following, None

    def _reach_unseen(self, start: int, before: int, after: int, seen: set[int]) -> list[int]:
        found: list[int] = []
        stack = [start]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self._program[at]
            if instruction.takes is not None or not instruction.ways:
                found.append(at)
            elif instruction.assertion is None or _holds(instruction.assertion, before, after):
                stack.extend(reversed(instruction.ways))
        return found

    def find_all(self, text: str, limit: int = -1, meter: Meter = _UNMETERED) -> list[str]:
        """Matches that do not overlap, at most ``limit`` of them if that is not negative."""
        found: list[str] = []
        at, last_end = 0, -1
        while at <= len(text) and (limit < 0 or len(found) < limit):
            match = self.find(text, at, meter)
            if match is None:
                break
            begin, end = match
            accepted = end > at or begin != last_end
            at = end if end > at else end + 1
            last_end = end
            if accepted:
                found.append(text[begin:end])
        return found


def _holds(assertion: str, before: int, after: int) -> bool:
    if assertion == "begin":
        return before == _NOTHING
    if assertion == "end":
        return after == _NOTHING
    if assertion == "line":
        return before in (_NOTHING, _NEWLINE)
    if assertion == "line end":
        return after in (_NOTHING, _NEWLINE)
    boundary = (before == _WORD) != (after == _WORD)
    return boundary == (assertion == "word")
