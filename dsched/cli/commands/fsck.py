"""``dsched fsck``: whether what is in Redis keeps the invariants."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dsched.cli import console, forms, options
from dsched.clock import SystemClock
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.fsck import api_objects, inspection, profiles
from dsched.fsck.api_objects import ApiObjects
from dsched.fsck.findings import Finding
from dsched.fsck.inspection import Report
from dsched.plugins import registry
from dsched.plugins.profiles import configuration
from dsched.state import emulated, standings

NOTES_SHOWN = 20
"""So many notes are printed; of more, only how many. JSON has all of them."""


class Told(msgspec.Struct, frozen=True):
    """A finding.

    Attributes:
        invariant: ``I1`` to ``I6``, ``I12`` to ``I14``.
        kind: what the subject is: pod, node, uid (of a reservation), device, podgroup or system.
    """

    invariant: str
    kind: str
    subject: str
    message: str


class Answer(msgspec.Struct, frozen=True):
    """What is printed as JSON.

    Attributes:
        clean: there is no breach.
        notes: what the scheduler is not to blame for.
        open: suspicions that the leader need not have settled yet.
        intake, version: how far the leader has taken the cluster in, and the cluster's version.
        at_rest: the leader has taken everything in and there is nothing to be decided.
    """

    clean: bool
    breaches: list[Told]
    notes: list[Told]
    open: list[Told]
    nodes: int
    pods: int
    bound: int
    finished: int
    pending: int
    reservations: int
    leader: str | None
    epoch: int
    intake: int
    version: int
    at_rest: bool


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched fsck --config scheduler.yaml")(fsck)


def fsck(
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="DSCHED_CONFIG",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="The system's KubeSchedulerConfiguration file: whose pods are its own, and what its filters look at.",
        ),
    ] = None,
    pause: Annotated[
        float | None,
        typer.Option(
            min=0,
            show_default=False,
            help="Seconds until what is suspected is read again (default: 0.5, of a Kubernetes cluster 3).",
        ),
    ] = None,
    oldest_reservation: Annotated[
        float, typer.Option(min=0, help="Seconds that a reservation may stand while there is nothing to decide.")
    ] = inspection.OLDEST_RESERVATION_S,
    output: forms.Printed = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
) -> None:
    """Check the scheduling state in Redis; exit code 1 when an invariant is broken, with a line for each breach.

    I1 every pending pod stands in one place. I2 bound pods are bound once. I3 no node is overfull by the scheduler's
    doing, and its usage is counted right. I4 attempts are kept, and nothing is left in flight. I5 no epoch is ahead of
    the present one. I6 every reservation has its pod, node and record, and ends. I12 no device is given twice, and
    none is held by nobody. I13 pods of a gang are placed together (a note only: pods may have been deleted since).
    I14 what counts against the limits of queues is counted right.

    Nothing is written. A running system can be checked: what looks wrong is looked at twice. The pods and nodes of a
    Kubernetes cluster are read from its API server, with the credentials of whoever asks.
    """
    store = options.open_store(redis_url, data_dir, name)
    features = emulated.follow(store)
    loaded = None if config is None else configuration(config, registry.load(), features)
    known = profiles.of(loaded, features)
    objects = None
    if standings.cluster(store) == Kind.KUBERNETES.value:
        chosen = options.chosen_cluster(Kind.KUBERNETES, kubeconfig, kube_context)
        schedulers = known.schedulers(standings.moment(store).schedulers, ())
        objects = ApiObjects(opening.open_access(chosen, loaded), schedulers)
    if pause is None:
        pause = inspection.PAUSE_S if objects is None else api_objects.PAUSE_S
    report = inspection.inspect(store, SystemClock(), known, pause, oldest_reservation, objects)
    if output is forms.Answer.JSON:
        console.write(forms.as_json(answer(report)))
    else:
        _print(report)
    if report.breaches:
        raise typer.Exit(1)


def answer(report: Report) -> Answer:
    """A report as it is printed as JSON."""
    view = report.view
    bound = sum(1 for pod in view.objects.pods.values() if pod.node and not pod.finished)
    finished = sum(1 for pod in view.objects.pods.values() if pod.finished)
    return Answer(
        clean=not report.breaches,
        breaches=[_told(finding) for finding in report.breaches],
        notes=[_told(finding) for finding in report.notes],
        open=[_told(finding) for finding in report.open],
        nodes=len(view.objects.nodes),
        pods=len(view.objects.pods),
        bound=bound,
        finished=finished,
        pending=len(view.objects.pods) - bound - finished,
        reservations=len(view.reservations) + len(view.unreadable),
        leader=view.moment.leader or None,
        epoch=view.epoch,
        intake=view.moment.intake,
        version=view.version,
        at_rest=view.leads and view.at_rest,
    )


def summary(found: Answer) -> str:
    """What was looked at, in words."""
    state = "at rest" if found.at_rest else "at work" if found.leader else "nobody leads"
    return (
        f"{found.nodes} nodes, {found.pods} pods ({found.bound} bound, {found.pending} pending, "
        f"{found.finished} finished), {found.reservations} reservations, epoch {found.epoch}, {state}"
    )


def _print(report: Report) -> None:
    found = answer(report)
    for finding in report.breaches:
        console.out.out(str(finding))
    for finding in report.notes[:NOTES_SHOWN]:
        console.err.print(f"note: {finding}", markup=False)
    if len(report.notes) > NOTES_SHOWN:
        console.err.print(f"note: and {len(report.notes) - NOTES_SHOWN} more; -o json has all of them", markup=False)
    if not found.version:
        console.err.print("note: this Redis keeps no cluster; only what needs no objects was checked", markup=False)
    if report.open:
        why = f"the leader has taken in version {found.intake} of {found.version}" if found.leader else "nobody leads"
        console.err.print(f"note: suspicions left open: {len(report.open)}; {why}", markup=False)
    if report.breaches:
        console.err.print(f"breaches: {len(report.breaches)}; {summary(found)}", style="red", markup=False)
    else:
        console.out.out(f"clean: {summary(found)}")


def _told(finding: Finding) -> Told:
    return Told(finding.invariant.value, finding.kind.value, finding.subject, finding.message)
