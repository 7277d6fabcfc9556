"""The program of scripts/judge decides each recorded case as the kube-scheduler did that recorded it."""

import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsched.conformance import comparing, vectors
from dsched.conformance.vectors import Vector
from tests.judge_program import judge_program

pytestmark = pytest.mark.built

WITHOUT = "-feature-gates=DynamicResourceAllocation=false"
"""As the vectors of v1.34 were recorded that are not about devices."""
DEVICES = ("allocations", "deallocated", "deletedClaims", "extendedResourceClaims")
"""Of these the program says nothing, nor of those that are under ``preemption``."""
SAMPLE = 300
"""Of thousands; ``tests/parity/test_conformance.py`` looks at all of them with dsched's own code."""


@pytest.mark.parametrize(
    ("release", "folder", "told"),
    [("1.34", "conformance", [WITHOUT]), ("1.34", "conformance/v1.34-dra", []), ("1.37", "conformance/v1.37", [])],
)
def test_vectors(shared: Path, release: str, folder: str, told: list[str]) -> None:
    path = judge_program(release)
    there = [vector for name in sorted((shared / folder).glob("*.jsonl.gz")) for vector in vectors.select([name])]
    cases = [vector for vector in there if "pod" in vector.case]
    chosen = random.Random(release).sample(cases, SAMPLE)
    asked = b"".join(msgspec.json.encode({"case": vector.case}) + b"\n" for vector in chosen)
    done = subprocess.run([path, *told], input=asked, capture_output=True, check=True)
    answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert [answer["name"] for answer in answers] == [vector.name for vector in chosen]
    pairs = zip(chosen, answers, strict=True)
    assert {vector.name: lines for vector, answer in pairs if (lines := differences(vector, answer))} == {}


def differences(vector: Vector, answer: dict[str, Any]) -> list[str]:
    """As decisions of dsched are compared; and every node that may be nominated, with those who would be deleted."""
    expect = _without_devices(vector.expect)
    if "preemption" in expect:
        expect["preemption"] = _without_devices(expect["preemption"])
    if "error" in expect or "error" in answer:
        return [] if _failed(expect) == _failed(answer) else [f"error: {expect.get('error')}, {answer.get('error')}"]
    lines = comparing.differences(_without_zeros(answer), _without_zeros(expect))
    found, expected = answer.get("preemption") or {}, expect.get("preemption") or {}
    if _nominated(found) != _nominated(expected):
        lines.append(f"nominated: {found.get('nominated')}, expected {expected.get('nominated')}")
    if "messages" in expected and found.get("messages") != expected["messages"]:
        lines.append(f"messages: {found.get('messages')}, expected {expected['messages']}")
    return lines


def _without_devices(expected: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in expected.items() if name not in DEVICES}


def _failed(decision: dict[str, Any]) -> tuple[str, str] | None:
    error = decision.get("error")
    return None if error is None else (error["stage"], error["plugin"])


def _without_zeros(decision: dict[str, Any]) -> dict[str, Any]:
    """A plugin that gives every node 0 is the same as an absent one."""
    scores = {name: column for name, column in (decision.get("scores") or {}).items() if any(column.values())}
    return {**decision, "scores": scores}


def _nominated(preemption: dict[str, Any]) -> dict[str, list[str]]:
    return {node: victims or [] for node, victims in (preemption.get("nominated") or {"": []}).items()}
