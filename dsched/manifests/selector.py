"""Label selectors as people write them on the command line: ``app=web,tier!=db,zone in (a,b),!canary``.

Source: k8s.io/apimachinery pkg/labels/selector.go (grammar and matching).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dsched.errors import SelectorError
from dsched.manifests import syntax

_SET = re.compile(r"(?P<key>[^\s=!,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUALITY = re.compile(r"(?P<key>[^\s=!,()<>]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!,()<>]*)")
_BOUND = re.compile(r"(?P<key>[^\s=!,()<>]+)\s*(?P<operator>[<>])\s*(?P<value>[+-]?[0-9]+)")
_PRESENCE = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s=!,()<>]+)")
_COMMA = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the label ``key``: operator ``in``, ``notin``, ``exists``, ``!``, ``<`` or ``>``."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """``notin`` also holds for objects without the label; ``<`` and ``>`` need a whole number."""
        value = labels.get(self.key)
        if self.operator == "notin":
            return value not in self.values
        if self.operator == "!":
            return value is None
        if value is None:
            return False
        if self.operator == "in":
            return value in self.values
        return self.operator == "exists" or self._within(value)

    def _within(self, value: str) -> bool:
        (bound,) = self.values
        try:
            return int(value) < int(bound) if self.operator == "<" else int(value) > int(bound)
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to hold; with none, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING = Selector()


def parse(text: str) -> Selector:
    """Read a selector; blank text selects everything.

    Raises:
        SelectorError: names the part that cannot be read.
    """
    if not text.strip():
        return EVERYTHING
    return Selector(tuple(_requirement(part.strip(), text) for part in _COMMA.split(text)))


def _requirement(part: str, text: str) -> Requirement:
    requirement = _read(part)
    if requirement is None:
        raise SelectorError(
            f'selector "{text}": "{part}" cannot be read; expected KEY=VALUE, KEY!=VALUE, KEY in (A,B), '
            "KEY notin (A,B), KEY>N, KEY<N, KEY or !KEY"
        )
    wrong = syntax.qualified_name(requirement.key)
    for value in sorted(requirement.values) if requirement.operator in ("in", "notin") else ():
        wrong = wrong or syntax.label_value(value)
    if wrong:
        raise SelectorError(f'selector "{text}": {wrong}')
    return requirement


def _read(part: str) -> Requirement | None:
    if match := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], match["operator"], values)
    if match := _EQUALITY.fullmatch(part):
        operator = "notin" if match["operator"] == "!=" else "in"
        return Requirement(match["key"], operator, frozenset({match["value"]}))
    if match := _BOUND.fullmatch(part):
        return Requirement(match["key"], match["operator"], frozenset({match["value"]}))
    if match := _PRESENCE.fullmatch(part):
        return Requirement(match["key"], "!" if match["absent"] else "exists")
    return None
