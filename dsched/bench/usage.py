"""What a system's processes and its Redis take: CPU, memory, commands, bytes.

A worker and the pool process that it forks are one. Linux only: elsewhere processes have no figures.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dsched.state import client
from dsched.state.client import Store
from dsched.supervisor import record

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
BENCHMARK = "benchmark"


@dataclass(frozen=True, slots=True)
class Process:
    """One process: CPU seconds so far, and the most memory that it ever held, in bytes."""

    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Redis:
    """What a Redis has done so far: commands by name (those that scripts call among them), and bytes."""

    commands: Mapping[str, int]
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Everything at one moment."""

    processes: Mapping[str, Process]
    redis: Redis

    def since(self, before: "Usage") -> "Usage":
        """What was taken since another moment; the peaks are those of now."""
        none = Process(0.0, 0)
        processes = {
            name: Process(round(now.cpu_s - before.processes.get(name, none).cpu_s, 3), now.peak_bytes)
            for name, now in self.processes.items()
        }
        commands = {
            name: count - before.redis.commands.get(name, 0)
            for name, count in self.redis.commands.items()
            if count > before.redis.commands.get(name, 0)
        }
        redis = Redis(
            commands,
            self.redis.bytes_in - before.redis.bytes_in,
            self.redis.bytes_out - before.redis.bytes_out,
        )
        return Usage(processes, redis)


def look(store: Store, data_dir: Path) -> Usage:
    """Look at the processes of the system with this data folder, at its Redis, and at this process."""
    processes = {child.name: _tree(child.pid) for child in record.read(data_dir) if child.pid}
    processes[BENCHMARK] = _tree(os.getpid(), children=False)
    with client.reachable(store):
        stats = store.redis.info("commandstats")
        net = store.redis.info("stats")
    commands = {str(name).removeprefix("cmdstat_"): int(row["calls"]) for name, row in stats.items()}
    return Usage(processes, Redis(commands, int(net["total_net_input_bytes"]), int(net["total_net_output_bytes"])))


def _tree(pid: int, *, children: bool = True) -> Process:
    found = [_one(each) for each in ([pid, *_descendants(pid)] if children else [pid])]
    return Process(sum(each.cpu_s for each in found), sum(each.peak_bytes for each in found))


def _one(pid: int) -> Process:
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        peak = _PEAK.search((_PROC / str(pid) / "status").read_text())
    except OSError:
        return Process(0.0, 0)
    return Process((int(fields[11]) + int(fields[12])) / _TICKS, int(peak[1]) * 1024 if peak else 0)


def _descendants(pid: int) -> Iterator[int]:
    try:
        words = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return
    for word in words:
        yield int(word)
        yield from _descendants(int(word))
