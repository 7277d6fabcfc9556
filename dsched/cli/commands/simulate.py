"""``dsched simulate``: where the pods of manifests would go, without a system."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dsched.cli import choosing, console, dividing, emulating, options
from dsched.cli.commands import config, snapshot
from dsched.cli.render import rehearsal as rehearsal_report
from dsched.cli.render import simulate as simulate_report
from dsched.clock import SystemClock
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.config.feature_gates import Version
from dsched.errors import DschedError
from dsched.manifests import exporting
from dsched.manifests.load import Manifest, load, load_text
from dsched.model import coscheduling
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from dsched.recording.rehearsal import Rehearsal
from dsched.scheduler.decision import Decision, GroupDecision, by_pod
from dsched.simulation.from_manifests import given
from dsched.simulation.outcome import DecisionLines, Outcome
from dsched.simulation.placing import simulate as place


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
        console.write(msgspec.json.format(simulate_report.encoded(outcome)).decode())
    else:
        console.write("\n".join(simulate_report.lines(outcome, wide=output is Output.WIDE)))


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
