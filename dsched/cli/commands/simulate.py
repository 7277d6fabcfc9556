"""``dsched simulate``: where the pods of manifests would go, without a system."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dsched.cli import choosing, console, dividing, emulating, options
from dsched.cli.commands import config, snapshot
from dsched.cli.render import columns
from dsched.cli.render import rehearsal as rehearsal_report
from dsched.clock import SystemClock
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.config.feature_gates import Version
from dsched.errors import DschedError
from dsched.manifests import exporting
from dsched.manifests.load import Manifest, load, load_text
from dsched.model import coscheduling
from dsched.observe.words import amount
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from dsched.recording.rehearsal import Rehearsal
from dsched.scheduler.decision import Decision, GroupDecision, by_pod
from dsched.simulation.capacity import Fill, NodeFill
from dsched.simulation.from_manifests import given
from dsched.simulation.outcome import DecisionLines, Ending, GroupOutcome, Outcome, PodOutcome, QueueOutcome
from dsched.simulation.placing import simulate as place

_SHOWN = 20
"""Rows of a table; ``wide`` shows all."""
_NAMED = 3
"""Pods that are named of those that do not fit for the same reason; ``wide`` names all."""

_WITHOUT_NODE = (Ending.UNSCHEDULABLE, Ending.FAILED, Ending.WAITING, Ending.GATED, Ending.IGNORED)
_QUEUE_TITLES = (
    *("QUEUE", "RUNNING", "PENDING", "RECLAIMED"),
    *("RESOURCE", "BEFORE", "AFTER", "FAIR SHARE", "GUARANTEED", "LIMIT"),
)
_HAS_NODE = frozenset({Ending.PLACED, Ending.WAITING, Ending.RESIZABLE})


class Output(StrEnum):
    """How the outcome is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched get no,po -A -o yaml | dsched simulate -f - -f ten-more-nodes.yaml")(simulate)


def simulate(
    files: choosing.Files = None,
    namespace: choosing.Namespace = None,
    config_file: config.ConfigFile = None,
    from_kubernetes: Annotated[
        bool,
        typer.Option("--from-kubernetes", help="Take the cluster that a kubeconfig file names, as snapshot does."),
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    context: Annotated[
        str | None,
        typer.Option("--context", "--kube-context", help="Context of the kubeconfig file.", show_default=False),
    ] = None,
    queues: dividing.Queues = None,
    emulated_version: emulating.EmulatedVersion = None,
    feature_gates: emulating.FeatureGates = None,
    compare_version: emulating.ComparedVersion = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the choice among equally good nodes.")] = 0,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; wide lists every node and pod.")
    ] = Output.TABLE,
    decisions: Annotated[
        Path | None,
        typer.Option(
            "--decisions", dir_okay=False, help="Write one JSON line a decision to this file.", show_default=False
        ),
    ] = None,
) -> None:
    """Place pods in memory, with the leader's own cycle: no Redis, no workers, nothing is applied.

    Takes what apply takes. Pods that name a node are there already; the others are placed in queue order, preemption
    included, until nothing changes any more.

    With --compare-version it tells instead what that version would decide differently about each pod, from the state in
    which the emulated version decides it; feature gates are the compared version's then.
    """
    if not files and not from_kubernetes:
        raise typer.BadParameter("name a file, a folder, or - for standard input", param_hint="-f")
    if compare_version and decisions is not None:
        raise typer.BadParameter("it goes without --compare-version", param_hint="--decisions")
    manifests = _manifests(files or [], namespace, kubeconfig, context, from_kubernetes=from_kubernetes)
    if queues is not None:
        own = [each for each in manifests if not dividing.is_queue(each)]
        manifests = [*own, *dividing.read(queues)]
    plugins, now_ms = registry.load(), SystemClock().now_ms()
    asked = emulating.asked(emulated_version, None if compare_version else feature_gates)
    features = asked.on(_version(kubeconfig, context) if from_kubernetes and not emulated_version else None)
    configured = config.read(config_file, plugins, features)
    if queues is not None:
        dividing.check_plugin(configured)
    profiles.emulate(features)
    cluster = given(manifests, now_ms)
    if configured.features.enabled(coscheduling.GATE):
        cluster = cluster.coscheduled()
    if compare_version:
        other = emulating.asked(compare_version, feature_gates)
        rehearsal = Rehearsal(plugins, other, lambda version: config.read(config_file, plugins, version))
        compared = other.on(configured.features.version)
        lines = simulated.lines(configured, plugins, cluster, now_ms, seed, compared)
        rehearsal.run(lines)
        as_json, wide = output is Output.JSON, output is Output.WIDE
        console.write(rehearsal_report.text(rehearsal.found, as_json=as_json, wide=wide))
        return
    decided = DecisionLines(seed)
    with _progress(len(cluster.waiting(configured))) as advance:

        def hear(decision: Decision | GroupDecision, version: int) -> None:
            advance(decision)
            if decisions is not None:
                decided.hear(decision, version)

        outcome = place(configured, plugins, cluster, now_ms, seed, hear)
    if decisions is not None:
        _write(decisions, decided)
    _print(outcome, output)


def _manifests(
    files: list[str], namespace: str | None, kubeconfig: Path | None, context: str | None, *, from_kubernetes: bool
) -> list[Manifest]:
    """Of a live cluster, and of files."""
    found = load(files, namespace) if files else []
    if not from_kubernetes:
        if kubeconfig is not None or context is not None:
            raise typer.BadParameter("it goes with --from-kubernetes", param_hint="--kubeconfig, --context")
        return found
    text = msgspec.json.encode(exporting.listed(list(snapshot.live(kubeconfig, context))))
    return [*load_text(text, "the cluster"), *found]


def _version(kubeconfig: Path | None, context: str | None) -> Version:
    """The live cluster's own.

    Raises:
        ClusterUnavailable: it cannot be read.
    """
    from dsched.cluster.kubernetes import version
    from dsched.cluster.kubernetes.http.client import Calls

    calls = Calls(opening.open_access(options.chosen_cluster(Kind.KUBERNETES, kubeconfig, context), None))
    try:
        return version.ask(calls)
    finally:
        calls.close()


def _print(outcome: Outcome, output: Output) -> None:
    if outcome.homeless:
        console.err.print(f"note: bound pods on nodes that were not given: {outcome.homeless}", markup=False)
    if output is Output.JSON:
        console.write(msgspec.json.format(_encoded(outcome)).decode())
    else:
        console.write("\n".join(_lines(outcome, wide=output is Output.WIDE)))


def _write(path: Path, lines: DecisionLines) -> None:
    try:
        path.write_bytes(lines.encoded())
    except OSError as error:
        raise DschedError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Decision | GroupDecision], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("pods", total=total)
        yield lambda decided: progress.advance(task, sum(each.candidate.attempt == 1 for each in by_pod([decided])))


def _encoded(outcome: Outcome) -> bytes:
    """As JSON; amounts are whole numbers, CPU in milli-units."""
    return msgspec.json.encode(
        {
            "counts": outcome.counts,
            "resources": outcome.resources,
            "nodes": outcome.nodes,
            "pods": outcome.pods,
            "groups": outcome.groups,
            "queues": outcome.queues,
            "homeless": outcome.homeless,
        }
    )


def _lines(outcome: Outcome, *, wide: bool) -> Iterator[str]:
    """For people: a summary, how full the cluster is, what queues have, the nodes, who had to go, what has no node and
    why."""
    told = [f"{count} {ending}" for ending, count in outcome.counts.items() if count]
    yield f"{len(outcome.pods)} pods: {', '.join(told)}" if told else "no pods to place"
    most = None if wide else _SHOWN
    yield from _section("", ("RESOURCE", "BEFORE", "AFTER", "ALLOCATABLE"), map(_resource, outcome.resources), None)
    yield from _section("Queues", _QUEUE_TITLES, _queues(outcome.queues), most)
    yield from _nodes(outcome.nodes, wide, most)
    if wide:
        with_node = (pod for pod in outcome.pods if pod.ending in _HAS_NODE)
        yield from _section("Placements", ("POD", "NODE", "ATTEMPTS"), map(_placement, with_node), most)
    groups = outcome.groups if wide else [group for group in outcome.groups if group.placed < group.pods]
    header = ("GROUP", "PLACED", "BOUND BEFORE", "MINIMUM", "ATTEMPTS", "STATUS", "WHY")
    yield from _section("Pod groups", header, map(_group, groups), most)
    evicted = [pod for pod in outcome.pods if pod.ending is Ending.EVICTED]
    yield from _section("Evicted", ("POD", "NODE", "FOR"), map(_eviction, evicted), most)
    for ending in _WITHOUT_NODE:
        yield from _reasons(ending, [pod for pod in outcome.pods if pod.ending is ending], wide)


def _section(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], most: int | None) -> Iterator[str]:
    """A table with an empty line before it, of at most so many rows; nothing at all without rows."""
    listed = list(rows)
    if not listed:
        return
    yield ""
    if title:
        yield f"{title}:"
    table = [header, *listed[:most]]
    widths = columns.widths(table)
    for row in table:
        yield columns.line(row, widths)
    if most is not None and len(listed) > most:
        yield f"… {len(listed) - most} more; -o wide lists all"


def _resource(fill: Fill) -> tuple[str, ...]:
    name = fill.resource
    return name, _share(fill, fill.before), _share(fill, fill.after), amount(name, fill.allocatable)


def _share(fill: Fill, counted: int) -> str:
    share = f" ({100 * counted / fill.allocatable:.1f}%)" if fill.allocatable else ""
    return f"{amount(fill.resource, counted)}{share}"


def _queues(queues: Sequence[QueueOutcome]) -> Iterator[tuple[str, ...]]:
    """A row a resource, the first of which names the queue; those below another are indented."""
    depths: dict[str, int] = {}
    for queue in queues:
        depths[queue.name] = depth = depths.get(queue.parent, -1) + 1
        first = ("  " * depth + queue.name, str(queue.running), str(queue.pending), str(queue.reclaimed))
        for number, use in enumerate(queue.resources):
            shown = (use.before, use.after, use.fair_share, use.guaranteed, use.limit)
            amounts = ["-" if each is None else amount(use.resource, each) for each in shown]
            yield (*(("", "", "", "") if number else first), use.resource, *amounts)
        if not queue.resources:
            yield (*first, *["-"] * 6)


def _nodes(nodes: Sequence[NodeFill], wide: bool, most: int | None) -> Iterator[str]:
    """Nodes where pods came or went; all of them where ``wide``."""
    shown = list(nodes if wide else [node for node in nodes if node.changed])
    resources = list(dict.fromkeys(fill.resource for node in shown for fill in node.resources))
    resources.sort(key=lambda resource: resource == "pods")
    header = ("NODE", "CAME", *(each.upper() for each in resources))
    yield from _section("Nodes", header, (_node(node, resources) for node in shown), most)


def _node(node: NodeFill, resources: Sequence[str]) -> tuple[str, ...]:
    fills = {fill.resource: fill for fill in node.resources}
    return node.name, f"{node.pods.after - node.pods.before:+d}", *(_use(fills.get(each)) for each in resources)


def _use(fill: Fill | None) -> str:
    if fill is None:
        return "-"
    return f"{amount(fill.resource, fill.after)}/{amount(fill.resource, fill.allocatable)}"


def _placement(pod: PodOutcome) -> tuple[str, ...]:
    return pod.key, pod.node, str(pod.attempts)


def _group(group: GroupOutcome) -> tuple[str, ...]:
    why = group.message or "-"
    placed = f"{group.placed}/{group.pods}"
    return group.key, placed, str(group.bound), str(group.wanted), str(group.attempts), group.ending, why


def _eviction(pod: PodOutcome) -> tuple[str, ...]:
    return pod.key, pod.node, pod.evicted_by or ""


def _reasons(ending: Ending, pods: Sequence[PodOutcome], wide: bool) -> Iterator[str]:
    """Pods by why they are where they are, the most frequent reason first."""
    by_reason: dict[str, list[str]] = {}
    for pod in pods:
        nominated = f" (promised {pod.nominated})" if pod.nominated else ""
        by_reason.setdefault(pod.message, []).append(f"{pod.key}{nominated}")
    if by_reason:
        yield ""
        yield f"{ending.capitalize()}:"
    for message, names in sorted(by_reason.items(), key=lambda entry: -len(entry[1])):
        named = names if wide else names[:_NAMED]
        rest = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
        yield f"  {', '.join(named)}{rest}: {message}"
