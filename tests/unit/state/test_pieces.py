"""What one script may be given to do: the cutting, and that every call site and every script keeps to it."""

import ast
import re

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster.standalone import stored
from dsched.errors import ScriptError
from dsched.state import pieces, requests
from tests.unit.state import call_sites
from tests.unit.state.call_sites import Site
from tests.unit.state.headers import Source, sources

SOURCES = {source.name: source for source in sources() + [Source(path) for path in stored.SCRIPTS.glob("*.lua")]}
SITES = call_sites.sites()

each_site = pytest.mark.parametrize("site", SITES, ids=lambda site: f"{site.script}-{site.where}")

WALKS = {
    ("config_publish", "DEL"): "the one configuration",
    ("nodes_write", "HKEYS"): "the fields of one node: a few for each resource",
    ("queue_look", "HGETALL"): "the record of one pod",
    ("queue_pop", "HKEYS"): "the profiles that are paused",
    ("queue_scan", "HGETALL"): "the records of pods, each its own",
    ("requests_take", "LRANGE"): "up to ARGV[2]",
}
"""Commands that take more or less time, and why what they are about is small."""
UNBOUNDED = re.compile(
    r'redis\.call\(\s*"(HGETALL|HKEYS|HVALS|SMEMBERS|KEYS|LRANGE|ZRANGE|ZRANGEBYSCORE|ZPOPMIN|XRANGE|HSCAN)"([^\n]*)'
)

BOUNDS = ("pieces.AT_MOST", "pieces.LIGHT_AT_MOST", "min(count, pieces.LIGHT_AT_MOST)", "TAKEN_AT_ONCE")

SMALL = {
    "dsched/state/leaders.py": "leader processes, forgotten after two minutes",
    "dsched/state/workers.py": "worker processes, forgotten when they are silent",
    "dsched/state/phases.py": "a field a phase",
    "dsched/state/pauses.py": "paused profiles",
    "dsched/state/attempt_history.py": "ten attempts of a pod",
    "dsched/state/position.py": "the record of one pod",
    "dsched/state/usage.py": "the usage of one node",
    "dsched/state/ledger.py": "the usage of nodes, each its own",
    "dsched/state/standings.py": "the usage of nodes, each its own; what was taken in",
    "dsched/leader/takeover.py": "the record of one pod",
    "dsched/cluster/standalone/objects.py": "the twenty newest events of a pod",
    "dsched/fsck/stored_objects.py": "the twenty newest events of a pod",
    "dsched/cli/commands/describe.py": "the record of one pod",
    "dsched/cli/commands/wait.py": "what was taken in",
}
"""Modules that read keys as a whole, and why these are small."""


@given(sizes=st.lists(st.integers(0, 2 * pieces.BYTES_AT_MOST), max_size=30))
def test_pieces_keep_the_order_and_stay_within_bytes(sizes: list[int]):
    cut = list(pieces.cut(sizes, lambda size: size))
    assert [size for piece in cut for size in piece] == sizes
    for piece in cut:
        assert len(piece) == 1 or sum(piece) <= pieces.BYTES_AT_MOST


@given(count=st.integers(0, 4 * pieces.AT_MOST))
def test_pieces_are_as_large_as_may_be(count: int):
    cut = list(pieces.cut(range(count)))
    assert [item for piece in cut for item in piece] == list(range(count))
    assert all(len(piece) == pieces.AT_MOST for piece in cut[:-1])
    assert all(piece for piece in cut)


def test_what_was_not_cut_is_refused():
    assert msgpack.unpackb(pieces.packed(["a"] * pieces.AT_MOST)) == ["a"] * pieces.AT_MOST
    with pytest.raises(ScriptError, match=f"{pieces.AT_MOST + 1} items for one script, which may be given"):
        pieces.packed([0] * (pieces.AT_MOST + 1))


def test_every_script_has_a_call_site_that_was_read():
    assert {site.script for site in SITES} == set(call_sites.made()) == set(SOURCES)


@each_site
def test_every_list_for_a_script_comes_from_one_place(site: Site):
    for argument, expression in zip(SOURCES[site.script].arguments, site.arguments, strict=True):
        text = ast.unparse(expression)
        if f"cmsgpack.unpack(ARGV[{argument.number}])" in SOURCES[site.script].body:
            assert argument.type == "msgpack"
            assert re.match(r"(pieces\.)?packed\(", text) or text in ("Packed", "_pack(kind, batch)"), text


@each_site
def test_every_count_for_a_script_is_bounded(site: Site):
    for argument, expression in zip(SOURCES[site.script].arguments, site.arguments, strict=True):
        if argument.name == "count":
            text = ast.unparse(expression)
            assert text in BOUNDS, text
    assert requests.TAKEN_AT_ONCE <= pieces.AT_MOST


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_no_script_reads_a_key_as_a_whole(source: Source):
    for command, rest in UNBOUNDED.findall(source.body):
        limited = {
            "HSCAN": ('"COUNT", ARGV',),
            "ZRANGEBYSCORE": ('"LIMIT", 0, ',),
            "ZRANGE": ("from + window",),
            "ZPOPMIN": (", count)", ", over)"),
        }
        bounded = any(limit in rest for limit in limited.get(command, ()))
        assert bounded or (source.name, command) in WALKS, f"{command}{rest}"


def test_no_key_that_grows_is_read_as_a_whole():
    found = list(call_sites.whole_reads())
    assert {path for path, _ in found} == set(SMALL), [each for each in found if each[0] not in SMALL]
