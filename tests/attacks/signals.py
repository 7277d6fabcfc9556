"""Signals at any moment of a start: while everything is being loaded, half way, and just when all is up."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals
from typing import NamedTuple

from dsched.clock import SystemClock
from dsched.fsck.inspection import inspect
from dsched.state import lease
from tests.acceptance import processes
from tests.acceptance.system import System, dsched
from tests.attacks.attack import Stand, attack
from tests.manifests import node_manifest, pod_manifest

PROMPT_S = 30.0
"""Far more than any end takes."""
OURS = re.compile(r'File ".*/(dsched|workers)/')
"""In a traceback that comes of this project, not of the first moments of Python itself."""
NOT_LOADED = ("Could not import runpy module\n", "Fatal Python error: init_")
"""What Python says, with the exit code 1, that is interrupted (SIGINT) before it runs anything of ours."""
NUMBERS = (SIGINT, SIGTERM, SIGHUP, SIGKILL)
PODS = 20


class Ended(NamedTuple):
    """How a process ended: its code (a negative one is a signal), and what it told on both streams."""

    code: int
    told: str


def _started(system: System, command: Sequence[str]) -> "subprocess.Popen[str]":
    where = {"DSCHED_REDIS_URL": system.redis_url or "", "DSCHED_NAME": system.name or ""}
    return subprocess.Popen(
        command,
        env={**system.environment, **where, "DSCHED_DATA_DIR": str(system.data_dir)},
        cwd=system.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _ended(process: "subprocess.Popen[str]") -> Ended:
    try:
        told, _ = process.communicate(timeout=PROMPT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        told, _ = process.communicate()
        raise AssertionError(f"it did not end: {told}") from None
    return Ended(process.returncode, told)


def _check(ended: Ended, number: Signals, *context: object, codes: Sequence[int] = ()) -> None:
    """It has ended as one that was not in the way, or by what it was sent, and no traceback of ours was told."""
    if number is SIGINT and ended.told.startswith(NOT_LOADED):
        codes = [*codes, 1]
    assert ended.code in {0, -number, 128 + number, *codes}, (context, ended)
    assert not OURS.search(ended.told), (context, ended)


def _nothing_left(system: System, *context: object) -> None:
    """Neither a process nor one that it has forked."""
    processes.wait_until(f"nothing is left of {context}", lambda: not processes.of_folder(system.folder), PROMPT_S)


def _expects(process: "subprocess.Popen[str]", number: Signals) -> bool:
    """Whether a process has said to Linux what it makes of a signal: Python's first moments are not ours."""
    masks = re.findall(r"Sig(?:Ign|Cgt):\s+(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def _takes_s(call: Callable[[], object]) -> float:
    """How long something takes, here and now."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _shared(stand: Stand, name: str) -> System:
    """A system without processes, on the stand's Redis."""
    return System(stand.folder / name, stand.redis().url, f"{name}-{stand.rng.random()}")


@attack(
    "SIGINT, SIGTERM, SIGHUP or SIGKILL at any moment of a command",
    sees="it ends by the signal, without a word; what it was to apply is there as a whole, or not at all",
)
def command_ended(stand: Stand) -> None:
    system = _shared(stand, "commands")
    system.apply(node_manifest("node-0"))
    store = stand.store(system.name)
    manifest = stand.folder / "pods.json"
    calls = (["get", "nodes"], ["queue"], ["fsck"], ["status"], ["apply", "-f", str(manifest)])
    longest_s = 1.2 * _takes_s(lambda: system.ask("get", "nodes"))
    for turn in range(1 + stand.rounds // 2):
        names = {f"pod-{turn}-{number}" for number in range(PODS)}
        items = [pod_manifest(f"default/{name}") for name in names]
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        words, number = stand.rng.choice(calls), stand.rng.choice(NUMBERS)
        process = _started(system, dsched(*words, *system.where()))
        time.sleep(after_s := stand.rng.uniform(0, longest_s))
        process.send_signal(number)
        ended = _ended(process)
        _check(ended, number, words, number, after_s, codes=[1] if words == ["status"] else [])  # nobody leads
        _nothing_left(system, words, number, after_s)
        there = {key.partition(b"/")[2].decode() for key in store.redis.hkeys(store.key("cluster:pods"))} & names
        assert there in (set(), names), f"half is there after {words} and {number.name}: {sorted(there)}"


@attack(
    "SIGINT, SIGTERM, SIGHUP or SIGKILL at any moment of a leader's start",
    sees="it ends at once and gives the lease back; SIGHUP ends no leader; the next one leads",
)
def leader_starts(stand: Stand) -> None:
    system = _shared(stand, "leaders")
    system.apply(node_manifest("node-0"), *(pod_manifest(f"default/pod-{number}") for number in range(PODS)))
    store = stand.store(system.name)
    command = dsched("leader", *system.where(), "--lease", "1")

    def leads() -> bool:
        return lease.holder(store) is not None

    def well() -> None:
        process = _started(system, command)
        processes.wait_until("it leads", lambda: leads() or process.poll() is not None)
        process.terminate()
        _check(ended := _ended(process), SIGTERM, "undisturbed")
        assert ended.code == 0, ended

    longest_s = 1.2 * _takes_s(well)
    for _ in range(1 + stand.rounds // 5):
        number, process = stand.rng.choice(NUMBERS), _started(system, command)
        time.sleep(after_s := stand.rng.uniform(0, longest_s))
        if number is SIGHUP:
            processes.wait_until("it is a leader's process", lambda process=process: _expects(process, SIGHUP))
            process.send_signal(SIGHUP)
            processes.wait_until("it leads", lambda process=process: leads() or process.poll() is not None)
            number = SIGTERM
        process.send_signal(number)
        _check(ended := _ended(process), number, number, after_s)
        _nothing_left(system, number, after_s)
        assert ended.code or not leads(), f"the lease was not given back: {number.name} after {after_s:.3f} s"
        processes.wait_until("the lease has run out", lambda: not leads())
    well()
    breaches = inspect(store, SystemClock(), pause_s=0.0).breaches
    assert not breaches, breaches


@attack(
    "SIGINT, SIGTERM or SIGKILL at any moment of a worker's start",
    sees="it ends, and so do the processes that it has forked; the next one is known to the leader",
)
def worker_starts(stand: Stand) -> None:
    system = _shared(stand, "workers")
    store = stand.store(system.name)
    for kind in ("evaluator", "binder"):
        command = [sys.executable, "-m", "celery", "-A", f"workers.{kind}", "worker", "--concurrency", "1"]

        def known() -> bool:
            return bool(store.redis.exists(store.key("workers")))

        def well(command: list[str] = command, kind: str = kind) -> None:
            process = _started(system, command)
            processes.wait_until(f"the {kind} is known", lambda: known() or process.poll() is not None)
            process.terminate()
            _check(ended := _ended(process), SIGTERM, "undisturbed")
            assert ended.code == 0, ended

        longest_s = 1.2 * _takes_s(well)
        for _ in range(1 + stand.rounds // 10):
            number, process = stand.rng.choice((SIGINT, SIGTERM, SIGKILL)), _started(system, command)
            time.sleep(after_s := stand.rng.uniform(0, longest_s))
            process.send_signal(number)
            _check(_ended(process), number, kind, number, after_s, codes=[1] if number is SIGINT else [])  # Celery's
            _nothing_left(system, kind, number, after_s)
            store.redis.delete(store.key("workers"))
        well()


@attack(
    "SIGINT, SIGTERM, SIGHUP or SIGKILL at any moment of `dsched up`, in the foreground and detached",
    sees="what it had started is stopped; only a detached system whose starter is killed with -9 goes on, until `down`",
)
def system_starts(stand: Stand) -> None:
    system = System(stand.folder / "up")
    few = ["--evaluators", "1", "--binders", "1"]
    longest_s = _takes_s(lambda: system.up(*few))
    system.down()
    for detached in (True, False):
        command = ["up", *few, *system.where()]
        for _ in range(max(1, stand.rounds // 20)):
            number = stand.rng.choice(NUMBERS)
            process = _started(system, dsched(*command, *(["--detach"] if detached else [])))
            time.sleep(after_s := stand.rng.uniform(0, longest_s))
            process.send_signal(number)
            over = ("detached" if detached else "foreground", number, after_s)
            if detached:
                ended = _ended(process)
                _check(ended, number, *over)
                if ended.code in (0, -SIGKILL):
                    system.down()
            else:
                _check(_ended(process), number, *over)
            _nothing_left(system, *over)
    system.up(*few)
    assert system.status()["state"]["leader"], "it does not come up any more"
    system.down()
    assert not system.tracebacks(), system.tracebacks()
