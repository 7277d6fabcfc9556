"""Turns a pattern into steps of a machine that is in several of them at once.

Go: ``regexp/syntax/compile.go``.
"""

from dataclasses import dataclass

from dsched.cel.regex.characters import Characters, PatternError
from dsched.cel.regex.parsing import Assertion, Choice, Repeat, Sequence, Tree

MAX_STEPS = 20_000
"""Steps of a program. RE2 allows more, for patterns that repeat long parts a thousand times."""


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
