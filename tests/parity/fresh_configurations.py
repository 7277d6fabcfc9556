"""Configuration files that nobody has seen before: those of the conformance vectors with parts of each other, and with
values that are out of place.
"""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from dsched.conformance import vectors

Json = Any
Place = tuple[str | int, ...]

NUMBERS = (-1, 0, 1, 2, 3, 5, 10, 50, 99, 100, 101, 200, 2**31 - 1, 2**31, 2**33, 1.5, "5", None, True)
WORDS = (
    *("", "bad name", "default-scheduler", "x", "a" * 70, "*", "-", "zone", "v1", "http://x", None, 5),
    *("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "requests.cpu", "example.com/gpu"),
    *("kubernetes.io/hostname", "System", "List", "DoNotSchedule", "ScheduleAnyway"),
    *("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", "NodeResourcesFit", "TaintToleration"),
)
DURATIONS = ("0s", "1s", "-1s", "0.5s", "1ns", "10m0s", "1h", "5", "xs", 5, None, "")
TIMES = ("imeout", "uration", "eriod", "eadline")
"""What fields have in their names that are durations."""
CHANGES = (1, 1, 1, 2, 2, 3, 5)


def known(folder: Path) -> list[Json]:
    """The documents of all vectors that have a configuration."""
    found = []
    for path in vectors.files([folder]):
        for each in vectors.read(path):
            if (text := each.case.get("configuration")) is not None:
                found += _documents(text)
            elif each.case.get("config"):
                found.append(each.case["config"])
    return found


def _documents(text: str) -> Iterator[Json]:
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if isinstance(read, dict):
        yield read


def text(chance: random.Random, documents: Sequence[Json]) -> str:
    """One of them, changed at a few places, as JSON or as YAML."""
    made = copy.deepcopy(chance.choice(documents))
    for _ in range(chance.choice(CHANGES)):
        _change(chance, made, documents)
    return json.dumps(made) if chance.random() < 0.8 else yaml.safe_dump(made, sort_keys=chance.random() < 0.5)


def _change(chance: random.Random, document: Json, others: Sequence[Json]) -> None:
    places = [place for place, _ in _walk(document) if place]
    if not places:
        return
    place = chance.choice(places)
    around: Json = document
    for key in place[:-1]:
        around = around[key]
    at, value, how = place[-1], around[place[-1]], chance.random()
    if how < 0.12:
        around.pop(at)
    elif how < 0.2 and isinstance(around, list):
        around.insert(at, copy.deepcopy(value))
    elif how < 0.25 and isinstance(value, dict):
        value[chance.choice(["unknown", "Weight", "NAME", "name", "weight"])] = chance.choice([1, "x"])
    elif how < 0.5 or isinstance(value, dict | list):
        _take_over(chance, around, at, _alike(place, chance.choice(others)))
    elif isinstance(value, bool):
        around[at] = chance.choice([not value, "true", None, 0])
    elif isinstance(value, str):
        around[at] = chance.choice(DURATIONS if any(each in str(at) for each in TIMES) else WORDS)
    else:
        around[at] = chance.choice(NUMBERS)


def _take_over(chance: random.Random, around: Json, at: Any, found: list[Json]) -> None:
    """What another document has there: instead of what there is, or besides."""
    if not found:
        return
    value = copy.deepcopy(chance.choice(found))
    if isinstance(around, list) and chance.random() < 0.5:
        around.append(value)
    elif isinstance(value, dict) and isinstance(around[at], dict) and chance.random() < 0.5:
        around[at] |= {key: each for key, each in value.items() if chance.random() < 0.5}
    elif isinstance(value, list) and isinstance(around[at], list) and chance.random() < 0.5:
        around[at] += value
    else:
        around[at] = value


def _alike(place: Place, other: Json) -> list[Json]:
    """What stands at places of another document that have the same name, entries of lists of the same name."""
    name = [key for key in place if isinstance(key, str)][-1:]
    entry = isinstance(place[-1], int)
    return [
        value
        for at, value in _walk(other)
        if at and isinstance(at[-1], int) == entry and [key for key in at if isinstance(key, str)][-1:] == name
    ]


def _walk(document: Json, at: Place = ()) -> Iterator[tuple[Place, Json]]:
    yield at, document
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield from _walk(value, (*at, key))
