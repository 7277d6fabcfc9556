"""Runs vectors and counts what agreed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from dsched.config import Features, feature_gates
from dsched.config.feature_gates import Version
from dsched.conformance import cel, configuration, decisions
from dsched.conformance.vectors import Vector
from dsched.errors import DschedError

CONFIGURATION = "configuration"
"""Families that begin with this are about files, not about decisions."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one vector went; without differences it passed, unless there is a reason why it was not run.

    Attributes:
        version: what was emulated.
        place: the file and the line.
    """

    name: str
    family: str
    version: str
    place: str
    differences: tuple[str, ...] = ()
    not_run: str = ""

    @property
    def passed(self) -> bool:
        return not self.differences and not self.not_run


class Count(msgspec.Struct):
    """How many vectors of a family passed, failed, and were not run."""

    passed: int = 0
    failed: int = 0
    not_run: int = 0


@dataclass(slots=True)
class Report:
    """Counts by version and family (``1.37 cel``), the vectors that failed and those that were not run, in running
    order."""

    families: dict[str, Count] = field(default_factory=dict)
    failures: list[Result] = field(default_factory=list)
    not_run: list[Result] = field(default_factory=list)

    def take(self, result: Result) -> None:
        """Count a result."""
        count = self.families.setdefault(f"{result.version} {result.family}", Count())
        if result.passed:
            count.passed += 1
        elif result.not_run:
            count.not_run += 1
            self.not_run.append(result)
        else:
            count.failed += 1
            self.failures.append(result)

    @property
    def total(self) -> Count:
        """Over all families."""
        counts = self.families.values()
        return Count(
            sum(count.passed for count in counts),
            sum(count.failed for count in counts),
            sum(count.not_run for count in counts),
        )

    def to_json(self) -> bytes:
        """``{"families": {"VERSION FAMILY": {"passed", "failed", "not_run"}}, "failures": [RESULT], "not_run":
        [RESULT]}``, a result being ``{"name", "family", "version", "place", "differences", "not_run"}``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


def run(vectors: Sequence[Vector], gates: Mapping[str, bool] = MappingProxyType({})) -> Iterator[Result]:
    """Run vectors one by one, each under its version.

    Args:
        gates: feature gates that are set.
    Raises:
        ConfigError: a version does not have a gate.
    """
    kinds = {(each.version, each.claims) for each in vectors}
    emulated = {kind: _features(*kind, gates) for kind in kinds}
    for vector in vectors:
        about = vector.name, vector.family, str(vector.version), vector.place
        reason = unreadable(vector)
        yield Result(*about, not_run=reason) if reason else Result(*about, _differences(vector, emulated))


def unreadable(vector: Vector) -> str:
    """Why a vector cannot be run, empty where it can."""
    case = vector.case
    if vector.family.startswith(CONFIGURATION):
        return "" if isinstance(case.get("configuration"), str) else "case.configuration is missing"
    if vector.family == cel.FAMILY:
        absent = next((field for field in ("expression", "driver", "device") if field not in case), "")
        return f"case.{absent} is missing" if absent else ""
    if "pod" not in case:
        return "case.pod is missing: dsched knows nothing else that could be decided"
    unknown = sorted(key for key, value in case.items() if value and key not in decisions.FIELDS)
    if unknown:
        return f"case.{unknown[0]}: dsched does not read such objects"
    return ""


def _features(version: Version, claims: bool, gates: Mapping[str, bool]) -> Features:
    """
    Raises:
        ConfigError: a gate cannot be set as told.
    """
    without = {} if claims else {"DynamicResourceAllocation": False}
    return feature_gates.features(version, {**without, **gates})


def _check(vector: Vector) -> Callable[..., list[str]]:
    if vector.family.startswith(CONFIGURATION):
        return configuration.check
    return cel.check if vector.family == cel.FAMILY else decisions.check


def _differences(vector: Vector, emulated: Mapping[tuple[Version, bool], Features]) -> tuple[str, ...]:
    try:
        return tuple(_check(vector)(vector.case, vector.expect, features=emulated[vector.version, vector.claims]))
    except (DschedError, msgspec.ValidationError) as error:
        return (f"cannot be run: {type(error).__name__}: {error}",)
