"""Functions of lists and sets: Kubernetes' own, version 3 of cel-go's extension, and what macros make maps with.

apiserver: ``pkg/cel/library/lists.go``; cel-go: ``ext/lists.go``, ``ext/sets.go``, ``ext/comprehensions.go``.
"""

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from dsched.cel.errors import CostExceeded
from dsched.cel.library.declarations import Overload, overload
from dsched.cel.library.operators import add, contains
from dsched.cel.values import NO_OVERLOAD, Duration, Failure, MapValue, UInt, compare, equal, key_of, runtime_type

MAX_RANGE = 1_000_000
COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZERO = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _is_sorted(values: list[Any]) -> Any:
    if len(values) == 1 and type(compare(values[0], values[0])) is Failure:
        return NO_OVERLOAD
    for one, other in pairwise(values):
        found = compare(one, other)
        if type(found) is not Failure and found > 0:
            return False
    return True


def _sum(zero: Any) -> Any:
    def run(values: list[Any]) -> Any:
        total = zero
        for each in values:
            total = add(total, each)
            if type(total) is Failure:
                return total
        return total

    return run


def _extreme(name: str, better: int) -> Any:
    def run(values: list[Any]) -> Any:
        if not values:
            return Failure(f"{name} called on empty list")
        found = values[0]
        for each in values[1:]:
            order = compare(found, each)
            if type(order) is not Failure and order == better:
                found = each
        return found

    return run


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((at for at, each in enumerate(values) if equal(each, wanted) is True), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted) is True), -1)


def _includes(target: Any, wanted: Any) -> bool:
    if type(target) is list:
        return any(equal(each, wanted) is True for each in target)
    return equal(target, wanted) is True


def _slice(values: list[Any], start: int, end: int) -> Any:
    if start < 0 or end < 0:
        return Failure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Failure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        return Failure(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> Any:
    if depth < 0:
        return Failure("level must be non-negative")
    found = values
    while depth and any(type(each) is list for each in found):
        found = [inner for each in found for inner in (each if type(each) is list else (each,))]
        depth -= 1
    return found


def _range(count: int) -> Any:
    if count > MAX_RANGE:  # would cost more than an expression may spend
        raise CostExceeded
    return list(range(count))


def _range_limited(count: int) -> Any:
    if count < 0:
        return Failure(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_RANGE:
        return Failure(f"lists.range: size {count} exceeds maximum allowed ({MAX_RANGE})")
    return _range(count)


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if not any(equal(each, other) is True for other in found):
            found.append(each)
    return found


def _sort(values: list[Any]) -> Any:
    return _sort_by(values, values)


def _sort_by(values: list[Any], keys: list[Any]) -> Any:
    if len(values) != len(keys):
        return Failure(f"expected a list of the same size as the keys, but got {len(values)} and {len(keys)} elements")
    if not values:
        return values
    if type(compare(keys[0], keys[0])) is Failure:
        return Failure("list elements must be comparable")
    if any(runtime_type(each) != runtime_type(keys[0]) for each in keys):
        return Failure("list elements must have the same type")

    def order(one: int, other: int) -> int:
        found: int = compare(keys[one], keys[other])
        return found

    return [values[each] for each in sorted(range(len(keys)), key=cmp_to_key(order))]


def _reverse(values: list[Any]) -> list[Any]:
    return values[::-1]


def _subset(values: list[Any], part: list[Any]) -> Any:
    return all(contains(each, values) for each in part)


def _equivalent(one: list[Any], other: list[Any]) -> Any:
    return _subset(one, other) and _subset(other, one)


def _intersects(one: list[Any], other: list[Any]) -> Any:
    return any(contains(each, other) for each in one)


def _inserted(target: MapValue, key: Any, value: Any) -> Any:
    """Puts an entry into a map that a loop is making, which nobody else sees."""
    if key in target:
        return Failure(f"insert failed: key {key} already exists")
    entries = target.entries
    assert isinstance(entries, dict)  # loops start with a dict of their own
    entries[key_of(key)] = value
    return target


def _merged(target: MapValue, more: MapValue) -> Any:
    for key in more:
        found = _inserted(target, key, more.get(key)[0])
        if type(found) is Failure:
            return found
    return target


def _sorting() -> list[Overload]:
    kinds = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
    found = [
        overload(f"list({each})::sort() -> list({each})", f"list_{kinds.get(each, each)}_sort", _sort)
        for each in COMPARABLE
    ]
    for each in COMPARABLE:
        name = f"list_{kinds.get(each, each)}_sortByAssociatedKeys"
        found.append(overload(f"list(T)::@sortByAssociatedKeys(list({each})) -> list(T)", name, _sort_by))
    return found


def _kubernetes() -> list[Overload]:
    found = [
        overload(f"list({each})::isSorted() -> bool", f"list_{each}_is_sorted_bool", _is_sorted) for each in COMPARABLE
    ]
    found += [
        overload(f"list({each})::sum() -> {each}", f"list_{each}_sum_{each}", _sum(zero))
        for each, zero in _ZERO.items()
    ]
    for name, better in (("max", -1), ("min", 1)):
        run = _extreme(name, better)
        found += [
            overload(f"list({each})::{name}() -> {each}", f"list_{each}_{name}_{each}", run) for each in COMPARABLE
        ]
    return found


OVERLOADS = [
    *_kubernetes(),
    overload("list(A)::indexOf(A) -> int", "list_a_index_of_int", _index_of),
    overload("list(A)::lastIndexOf(A) -> int", "list_a_last_index_of_int", _last_index_of),
    overload("list(T)::slice(int, int) -> list(T)", "list_slice", _slice),
    overload("list(list(T))::flatten() -> list(T)", "list_flatten", _flatten),
    overload("list(dyn)::flatten(int) -> list(dyn)", "list_flatten_int", _flatten),
    *_sorting(),
    overload("list(T)::reverse() -> list(T)", "list_reverse", _reverse),
    overload("list(T)::distinct() -> list(T)", "list_distinct", _distinct),
    overload("sets.contains(list(T), list(T)) -> bool", "list_sets_contains_list", _subset),
    overload("sets.equivalent(list(T), list(T)) -> bool", "list_sets_equivalent_list", _equivalent),
    overload("sets.intersects(list(T), list(T)) -> bool", "list_sets_intersects_list", _intersects),
    overload("cel.@mapInsert(map(K, V), K, V) -> map(K, V)", "@mapInsert_map_key_value", _inserted),
    overload("cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)", "@mapInsert_map_map", _merged),
]
RANGE = overload("lists.range(int) -> list(int)", "lists_range", _range)
LIMITED_RANGE = overload("lists.range(int) -> list(int)", "lists_range", _range_limited)
"""Of cel-go 0.29."""
INCLUDES = overload("dyn::includes(dyn) -> bool", "list_includes_dyn_dyn", _includes)
"""Since 1.36."""
