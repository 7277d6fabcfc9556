"""Runs vectors and counts what agreed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from dsched.conformance import configuration, decisions
from dsched.conformance.vectors import Vector
from dsched.errors import DschedError

CONFIGURATION = "configuration"
"""The family that is about files, not about decisions."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one vector went; without differences it passed."""

    name: str
    family: str
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


class Count(msgspec.Struct):
    """How many vectors of a family passed and failed."""

    passed: int = 0
    failed: int = 0


@dataclass(slots=True)
class Report:
    """Counts by family and the vectors that failed, in running order."""

    families: dict[str, Count] = field(default_factory=dict)
    failures: list[Result] = field(default_factory=list)

    def take(self, result: Result) -> None:
        """Count a result."""
        count = self.families.setdefault(result.family, Count())
        if result.passed:
            count.passed += 1
        else:
            count.failed += 1
            self.failures.append(result)

    @property
    def total(self) -> Count:
        """Over all families."""
        counts = self.families.values()
        return Count(sum(count.passed for count in counts), sum(count.failed for count in counts))

    def to_json(self) -> bytes:
        """``{"families": {FAMILY: {"passed", "failed"}}, "failures": [{"name", "family", "differences"}]}``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


def run(vectors: Iterable[Vector]) -> Iterator[Result]:
    """Run vectors one by one."""
    for vector in vectors:
        yield Result(vector.name, vector.family, tuple(_differences(vector)))


def _differences(vector: Vector) -> list[str]:
    check = configuration.check if vector.family == CONFIGURATION else decisions.check
    try:
        return check(vector.case, vector.expect)
    except (DschedError, msgspec.ValidationError) as error:
        return [f"cannot be run: {type(error).__name__}: {error}"]
