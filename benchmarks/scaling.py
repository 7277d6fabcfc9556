"""How many pods a second 1, 2, 8, 64 and 512 evaluators would give, calculated from measured constants.

Run from the checkout: ``python -m benchmarks.scaling``. A batch of pods is played through: the leader, Redis and the
evaluators each do one thing at a time, and take for it what `Constants` says. The formulae and what they leave out are
in ``docs/scaling.md``.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dsched.bench import plot
from dsched.errors import ConfigError
from dsched.leader.evaluators.cost import Costs


@dataclass(frozen=True)
class Constants:
    """Measured on a machine with two cores, CPython 3.11, Redis 6.2; µs unless the name says otherwise.

    Attributes:
        commit: leader's CPU a pod outside the cycle: intake, pop, reserve, hand-out, settling. ``dsched bench
            scheduler-perf``, SchedulingBasic/5000Nodes_10000Pods: the leader's CPU seconds a pod, less `decide`.
        redis: Redis' CPU a pod, from the same run. The leader does the above meanwhile, and waits for what is left.
        decide: a pod of a known class: ``benchmarks.growth``; decide_row: what looking for the highest total among all
            nodes costs a node, where it has to be done for each pod: ``benchmarks.constants``.
        in_turn: what a pod costs more where classes come in turn and rows are judged again: ``benchmarks.growth``.
        judge_row: one class on one row in the leader; there_row: by an evaluator, packed; take_row: unpacked, joined
            and ranked by the leader. ``benchmarks.constants``, as all that follow.
        message, message_redis: sending one of many messages: the leader's time, Redis' part.
        round_trip: a request to one evaluator beside its judging and its message: sending, worker, reply, waking up.
        change: an evaluator reads and applies a change of the table; skip: it sees that one is about another shard.
        reply_bytes: of an answer, a row and class; change_bytes: of a pod placed in the log; log_node_bytes: of a node.
        byte_ns: a byte through Redis, there and back.
        node_bytes, pod_bytes: resident memory of a replica.
    """

    commit: float = 116.0
    redis: float = 114.0
    decide: float = 28.0
    decide_row: float = 0.0004
    in_turn: float = 75.0
    judge_row: float = 0.048
    there_row: float = 0.053
    take_row: float = 0.036
    message: float = 88.0
    message_redis: float = 13.0
    round_trip: float = 1_500.0
    change: float = 35.0
    skip: float = 0.21
    reply_bytes: float = 40.0
    change_bytes: float = 215.0
    log_node_bytes: float = 270.0
    byte_ns: float = 3.6
    node_bytes: float = 1_600.0
    pod_bytes: float = 920.0


BATCH = 256
CLASSES = 16
"""New classes of pods in each batch."""
PODS_A_NODE = 10
EVALUATORS = (1, 2, 8, 64, 512)
NODES = (5_000, 100_000, 1_000_000)
POWERS = tuple(1 << power for power in range(10))


@dataclass(frozen=True)
class Work:
    """What is scheduled.

    Attributes:
        classes: that are new in each batch; 0: all are known.
        plugin: a plugin that is called node by node, µs a call; 0 for table plugins alone.
        each: that plugin says no scope, so that every pod is judged anew, and each evaluator holds the whole table.
    """

    name: str
    classes: int
    plugin: float = 0.0
    each: bool = False


SCOPED = Work(f"20 µs plugin with a scope, {CLASSES} new classes a batch", CLASSES, 20.0)
WORKS = (
    Work("table plugins, one known class", 0),
    Work(f"table plugins, {CLASSES} new classes a batch", CLASSES),
    SCOPED,
    Work("20 µs plugin without a scope", 1, 20.0, each=True),
)


@dataclass(frozen=True)
class Outcome:
    """What a batch came to.

    Attributes:
        fanned_out: whether the evaluators are asked.
        parts: seconds of the batch by what the leader did or waited for.
        replica_bytes: of one evaluator, were it to be asked.
    """

    work: str
    nodes: int
    evaluators: int
    fanned_out: bool
    parts: Mapping[str, float]
    replica_bytes: float

    @property
    def pods_a_second(self) -> float:
        return BATCH / sum(self.parts.values())

    @property
    def limit(self) -> str:
        """What takes the largest part."""
        return max(self.parts, key=lambda part: self.parts[part])


def request(
    constants: Constants, work: Work, nodes: int, evaluators: int, changes: int
) -> tuple[dict[str, float], float]:
    """Play one request through. Returns µs by part, and what the slowest shard took.

    The leader sends a message a shard, all at once; Redis hands out messages and changes one after the other; each
    evaluator applies the changes and judges its shard; the leader takes answers in the order in which they are there.
    """
    count = min(evaluators, nodes)
    classes = work.classes
    cells = classes * nodes / count
    held = changes if work.each else changes / count
    judging = held * constants.change + (changes - held) * constants.skip + cells * (constants.there_row + work.plugin)
    log_out = constants.message_redis + changes * constants.change_bytes * constants.byte_ns / 2_000
    taking = cells * (constants.take_row + constants.reply_bytes * constants.byte_ns / 1_000)
    now = sent = count * constants.message
    ready = [sent + number * log_out + constants.round_trip + judging for number in range(1, count + 1)]
    waited = 0.0
    for answer in ready:
        waited += max(answer - now, 0.0)
        now = max(answer, now) + taking
    return {"messages": sent, "evaluators": waited, "replies": taking * count}, judging


def play(constants: Constants, work: Work, nodes: int, evaluators: int, *, fan_out: bool | None = None) -> Outcome:
    """A batch of pods.

    Args:
        fan_out: None: as mode auto decides.
    """
    requests, changes = (BATCH, 1) if work.each else (1, BATCH)
    here = work.classes * nodes * (constants.judge_row + work.plugin)
    parts, fanned_out = {"judging here": requests * here}, False
    if work.classes and fan_out is not False:
        there, slowest = request(constants, work, nodes, evaluators, changes)
        costs = Costs(round_trip_s=(sum(there.values()) - slowest) / 1e6)
        if fan_out or costs.saved_s(here / 1e6, evaluators, rows=0):
            parts, fanned_out = {part: requests * took for part, took in there.items()}, True
    busy = {"commit": constants.commit, "choosing": constants.decide + constants.decide_row * nodes}
    if work.classes > 1:
        # Of each pod's class, the rows are stale that the pods of the other classes went to.
        busy["judging again"] = constants.in_turn + work.classes * work.plugin
    busy["Redis"] = max(constants.redis - sum(busy.values()), 0.0)
    parts |= {part: BATCH * took for part, took in busy.items()}
    replica = nodes / (1 if work.each else evaluators) * (constants.node_bytes + PODS_A_NODE * constants.pod_bytes)
    seconds = {part: took / 1e6 for part, took in parts.items()}
    return Outcome(work.name, nodes, evaluators, fanned_out, seconds, replica)


def best(constants: Constants, work: Work, nodes: int) -> int:
    """The fewest evaluators, of the powers of two, with which it is within 5 % of its fastest."""
    rates = {count: play(constants, work, nodes, count).pods_a_second for count in POWERS}
    return next(count for count, rate in rates.items() if rate >= 0.95 * max(rates.values()))


def table(constants: Constants) -> str:
    """Pods a second, and what limits them, as a table in Markdown."""
    heads = [
        "pods",
        "nodes",
        *(f"{count} evaluators" if count > 1 else "1 evaluator" for count in EVALUATORS),
        "enough",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---|--:|" + "--:|" * (len(EVALUATORS) + 1)]
    for work in WORKS:
        for nodes in NODES:
            cells = []
            for count in EVALUATORS:
                found = play(constants, work, nodes, count)
                cells.append(f"{_short(found.pods_a_second)} {found.limit}")
            lines.append("| " + " | ".join([work.name, f"{nodes:,}", *cells, str(best(constants, work, nodes))]) + " |")
    return "\n".join(lines)


def memory(constants: Constants) -> str:
    """What an evaluator's replica takes, as a table in Markdown."""
    shards = [f"1/{count} of it" for count in EVALUATORS[1:]]
    heads = ["nodes", "pods", "whole table", *shards, "log", "to build the whole", f"to build {shards[-1]}"]
    lines = ["| " + " | ".join(heads) + " |", "|--:" * len(heads) + "|"]
    for nodes in NODES:
        pods = PODS_A_NODE * nodes
        replicas = [play(constants, SCOPED, nodes, count).replica_bytes for count in EVALUATORS]
        log = nodes * constants.log_node_bytes + pods * constants.change_bytes
        sizes = [f"{_short(size / (1 << 20))} MiB" for size in (*replicas, log)]
        times = [
            (nodes + pods) * (constants.change / count + constants.skip * (1 - 1 / count))
            for count in (1, EVALUATORS[-1])
        ]
        seconds = [f"{_short(took / 1e6)} s" for took in times]
        lines.append("| " + " | ".join([f"{nodes:,}", f"{pods:,}", *sizes, *seconds]) + " |")
    return "\n".join(lines)


def _short(value: float) -> str:
    """Two significant digits are as many as the model is worth."""
    return f"{float(f'{value:.2g}'):,g}"


def draw(constants: Constants, path: Path) -> None:
    """A panel for each number of nodes: pods a second by evaluators. Dotted: fanned out although it does not pay."""
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, len(NODES), figsize=(13, 5), sharey=True, layout="constrained")
    for axis, nodes in zip(axes, NODES, strict=True):
        for number, work in enumerate(WORKS):
            rates = [play(constants, work, nodes, count).pods_a_second for count in POWERS]
            axis.plot(POWERS, rates, marker="o", markersize=4, color=f"C{number}", label=work.name)
            if work.classes:
                forced = [play(constants, work, nodes, count, fan_out=True).pods_a_second for count in POWERS]
                axis.plot(POWERS, forced, linestyle=":", color=f"C{number}")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(POWERS, [str(count) for count in POWERS])
        axis.yaxis.set_major_formatter(pyplot.FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set(title=f"{nodes:,} nodes", xlabel="evaluators (processes)")
        axis.grid(True, alpha=0.4)
    axes[0].set_ylabel("pods a second, calculated")
    handles, labels = axes[0].get_legend_handles_labels()
    dotted = pyplot.Line2D([], [], color="grey", linestyle=":")
    figure.legend(
        [*handles, dotted], [*labels, "mode distributed"], loc="outside lower center", ncols=3, fontsize="small"
    )
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(words: Sequence[str] | None = None) -> None:
    """Calculate and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the constants and everything calculated there")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw it; needs the extra bench")
    options = parser.parse_args(words)
    if options.plot is not None:
        try:
            plot.check(options.plot)
        except ConfigError as error:
            sys.exit(f"scaling: {error}")
    constants = Constants()
    print(table(constants), memory(constants), sep="\n\n")
    if options.json is not None:
        outcomes = [play(constants, work, nodes, count) for work in WORKS for nodes in NODES for count in EVALUATORS]
        rows = [asdict(found) | {"pods_a_second": found.pods_a_second, "limit": found.limit} for found in outcomes]
        options.json.write_text(json.dumps({"constants": asdict(constants), "outcomes": rows}, indent=1) + "\n")
    if options.plot is not None:
        draw(constants, options.plot)


if __name__ == "__main__":
    main()
