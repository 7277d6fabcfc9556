"""Scripts keep what their headers promise, callers keep to the headers, and the loader refuses what is malformed."""

import re
from typing import Any

import pytest
import redis

from dsched.errors import RedisUnavailable, ScriptError, StaleEpoch
from dsched.state import keys, scripts
from dsched.state.client import UNAVAILABLE, Store
from dsched.state.scripts import FOLDER, Script
from tests.unit.state.callers import CALLERS, EPOCH, WritingDown
from tests.unit.state.headers import Source, sources

SOURCES = sources()
SHARED_LISTS = [
    [key.name for key in each] for each in (keys.QUEUES, keys.QUEUES_AND_RESERVATIONS, keys.RELEASE, keys.RESERVE)
]
COMMANDS_OF_6_2 = {
    *("DEL", "EXISTS", "EXPIRE", "GET", "PEXPIRE", "PTTL", "SET", "TYPE"),
    *("LPUSH", "LRANGE", "LTRIM"),
    *("HDEL", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HMGET", "HSCAN", "HSET"),
    "SCAN",
    *("ZADD", "ZCARD", "ZPOPMIN", "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZREM", "ZSCORE"),
    *("XADD", "XDEL", "XLEN", "XREVRANGE", "XTRIM"),
}
WITHOUT_EPOCH = {"lease_acquire", "queue_look", "queue_scan"}
"""The first asks for an epoch, the others change nothing."""

each_script = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)


# -- headers -----------------------------------------------------------------------------------------------------------


@each_script
def test_header_says_in_its_first_line_what_the_script_does(source: Source):
    assert re.match(rf"-- {source.name}: \S.*[^:]$", source.header.splitlines()[0])
    assert len(re.findall(r"^-- RETURNS \S", source.header, re.MULTILINE)) == 1


@pytest.mark.parametrize("path", sorted((FOLDER / "includes").glob("*.lua")), ids=lambda path: path.stem)
def test_include_says_what_it_is_and_is_used(path):
    assert path.read_text().startswith(f"-- {path.stem}: ")
    assert [source.name for source in SOURCES if f"-- INCLUDE {path.stem}" in source.header]


@each_script
def test_header_names_every_key_in_order_with_its_type(source: Source):
    assert source.header.count("-- KEYS[") == len(source.keys)
    assert [key.number for key in source.keys] == list(range(1, len(source.keys) + 1))
    types = {key.name: "prefix" if key.name.endswith(":") else key.type for key in keys.ALL}
    assert {key.name: key.type for key in source.keys} == {key.name: types[key.name] for key in source.keys}


@each_script
def test_keys_of_the_body_are_those_of_the_header(source: Source):
    declared = {key.number for key in source.keys}
    assert source.used("KEYS") <= declared
    if [key.name for key in source.keys] not in SHARED_LISTS:
        unused = declared - source.used("KEYS")
        assert not unused or source.name == "queue_look", f"{source.name} never uses KEYS {unused}"


@each_script
def test_arguments_of_the_body_are_those_of_the_header(source: Source):
    assert source.header.count("-- ARGV[") == len(source.arguments)
    assert [argument.number for argument in source.arguments] == list(range(1, len(source.arguments) + 1))
    assert source.used("ARGV") == {argument.number for argument in source.arguments}
    assert {argument.type for argument in source.arguments} <= {"int", "text", "msgpack", "0|1"}


@each_script
def test_every_caller_passes_what_the_header_says(source: Source):
    server = WritingDown()
    store = Store(server, "x", "redis://nowhere")  # type: ignore[arg-type]
    CALLERS[source.name](store)
    calls = [call for call in server.calls if call.script == source.name]
    assert calls
    for call in calls:
        assert call.keys == [store.key(key.name) for key in source.keys]
        assert len(call.args) == len(source.arguments)
        if source.takes_epoch:
            assert call.args[0] == EPOCH


def test_every_script_has_a_caller():
    assert set(CALLERS) == {source.name for source in SOURCES}


CALLS = ("call", "pcall")
"""How a body asks Redis; the second is told of an error instead of ending with it."""

# -- bodies ------------------------------------------------------------------------------------------------------------


@each_script
def test_commands_are_named_and_in_redis_6_2(source: Source):
    functions = {function for function, _ in source.calls}
    assert functions <= {*CALLS, "error_reply"}
    commands = [first for function, first in source.calls if function in CALLS]
    assert commands
    assert {command.strip('"') for command in commands} <= COMMANDS_OF_6_2
    assert all(re.fullmatch('"[A-Z]+"', command) for command in commands)


def test_the_list_of_commands_is_not_longer_than_it_has_to_be():
    used = {first.strip('"') for source in SOURCES for function, first in source.calls if function in CALLS}
    assert used == COMMANDS_OF_6_2


@each_script
def test_time_and_chance_are_arguments(source: Source):
    assert not re.search(r"\b(math\.random\w*|os\.\w+|redis\.setresp|redis\.replicate_commands)\b", source.body)
    assert not source.body.startswith("#!")


@each_script
def test_every_script_that_changes_something_looks_at_the_epoch_first(source: Source):
    assert source.takes_epoch == (source.name not in WITHOUT_EPOCH)
    if source.takes_epoch:
        epoch = next(key.number for key in source.keys if key.name == keys.EPOCH.name)
        first = source.own_body.strip().splitlines()[:3]
        assert first == [f"if not fenced(KEYS[{epoch}], ARGV[1]) then", "  return stale(ARGV[1])", "end"]


# -- the loader --------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "includes").mkdir()
    return tmp_path


def test_a_missing_script_is_refused(folder):
    with pytest.raises(ScriptError, match=r"queue_pop: there is no script .*queue_pop\.lua"):
        scripts.read(folder, "queue_pop")


@pytest.mark.parametrize("text", ["return 1\n", "-- other: does it.\nreturn 1\n", "-- do_it does it.\nreturn 1\n", ""])
def test_a_script_without_its_header_is_refused(folder, text):
    (folder / "do_it.lua").write_text(text)
    with pytest.raises(ScriptError, match=r"does not open with a header '-- do_it: what it does'"):
        scripts.read(folder, "do_it")


def test_a_missing_include_is_refused(folder):
    (folder / "do_it.lua").write_text("-- do_it: does it.\n-- INCLUDE fence\nreturn 1\n")
    with pytest.raises(ScriptError, match=r"do_it\.lua: include fence is not in .*includes"):
        scripts.read(folder, "do_it")


def test_includes_are_put_in_where_they_are_named(folder):
    (folder / "includes" / "one.lua").write_text("local one = 1\n")
    (folder / "do_it.lua").write_text("-- do_it: does it.\n-- INCLUDE one\nreturn one\n")
    assert scripts.read(folder, "do_it") == "-- do_it: does it.\nlocal one = 1\n\nreturn one\n"


@pytest.mark.parametrize("given", [(), ("a",), ("a", "b", "c")])
def test_a_wrong_number_of_keys_is_refused_before_anything_is_sent(folder, given):
    (folder / "do_it.lua").write_text(
        "-- do_it: does it.\n-- KEYS[1] a  string  x\n-- KEYS[2] b  string  x\nreturn 1\n"
    )
    server = WritingDown()
    with pytest.raises(ScriptError, match=rf"do_it: {len(given)} keys given, its header names 2"):
        Script(Store(server, "x", "redis://nowhere"), "do_it", folder)(given)  # type: ignore[arg-type]
    assert server.calls == []


# -- errors ------------------------------------------------------------------------------------------------------------


def failing(folder, error: Exception) -> Script:
    """A script whose server answers with an error."""
    (folder / "do_it.lua").write_text("-- do_it: does it.\nreturn 1\n")

    class Failing:
        def register_script(self, source: str) -> Any:
            def script(keys: Any, args: Any) -> Any:
                raise error

            return script

    return Script(Store(Failing(), "x", "redis://:secret@nowhere"), "do_it", folder)  # type: ignore[arg-type]


def test_a_stale_epoch_is_an_error_of_its_own(folder):
    with pytest.raises(StaleEpoch, match="do_it refused: epoch 7") as caught:
        failing(folder, redis.ResponseError("STALE_EPOCH 7"))((), [7])
    assert caught.value.offered == 7


def test_a_script_that_fails_is_named(folder):
    with pytest.raises(ScriptError, match="do_it: ERR wrong type"):
        failing(folder, redis.ResponseError("ERR wrong type"))(())


IN_6_2 = "Error running script (call to f_0): @user_script:12: @user_script: 12: -"
"""Redis 6.2 wraps what a command within a script answers; Redis 7 hands it on."""


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("away"),
        redis.TimeoutError("slow"),
        redis.BusyLoadingError("loading"),
        redis.ReadOnlyError("You can't write against a read only replica. script: 0, on @user_script:12."),
        redis.ResponseError(IN_6_2 + "READONLY You can't write against a read only replica."),
        redis.ResponseError(IN_6_2 + "NOREPLICAS Not enough good replicas to write."),
        redis.ResponseError(IN_6_2 + "MASTERDOWN Link with MASTER is down."),
        redis.ResponseError("ERR Error running script (call to f_0): Script killed by user with SCRIPT KILL..."),
    ],
    ids=[
        "away",
        "slow",
        "loading",
        "replica of 7",
        "replica of 6.2",
        "too few replicas of 6.2",
        "replica of 6.2 without its master",
        "ended by somebody",
    ],
)
def test_a_server_that_is_away_or_a_replica_is_unavailable_whatever_its_version(folder, error):
    with pytest.raises(UNAVAILABLE):
        failing(folder, error)(())


@pytest.mark.parametrize(
    "error",
    [
        redis.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        redis.ResponseError(IN_6_2 + "OOM command not allowed when used memory > 'maxmemory'."),
    ],
    ids=["7", "6.2"],
)
def test_a_full_server_is_unavailable_whatever_its_version_and_its_password_stays_hidden(folder, error):
    with pytest.raises(RedisUnavailable, match="is full, nothing was changed") as caught:
        failing(folder, error)(())
    assert "secret" not in str(caught.value)
