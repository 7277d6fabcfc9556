"""``dsched up`` and ``down``: a whole system on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dsched import ending, log
from dsched.cli import console, emulating, forms, options
from dsched.clock import SystemClock
from dsched.cluster.opening import Kind
from dsched.config import Features
from dsched.errors import ConfigError
from dsched.leader.evaluators.mode import Mode
from dsched.observe.address import LOOPBACK, PORT_VARIABLE
from dsched.state import address, client
from dsched.supervisor import background, commands, supervise


class Started(msgspec.Struct, frozen=True):
    """A system that runs in the background.

    Attributes:
        redis: the URL with its password hidden; ``dsched redis-url`` prints all of it.
        logs: the folder of the logs.
    """

    name: str
    redis: str
    supervisor_pid: int
    data_dir: str
    logs: str


class Stopped(msgspec.Struct, frozen=True):
    """
    Attributes:
        ran: whether there was anything to stop.
        stopped: the children that ran.
    """

    ran: bool
    stopped: list[str]


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command(epilog="Example: dsched up --detach --leaders 2 --evaluators 4")(up)
    app.command(epilog="Example: dsched drain && dsched down")(down)


def up(
    data_dir: options.DataDir = None,
    redis_url: options.RedisUrl = None,
    name: options.Name = None,
    leaders: Annotated[int, typer.Option(min=1, help="Leaders: one leads, the rest stand by.")] = 1,
    evaluators: Annotated[int, typer.Option(min=0, help="Evaluator workers.")] = 2,
    binders: Annotated[int, typer.Option(min=0, help="Binder workers.")] = 2,
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="DSCHED_CONFIG",
            exists=True,
            dir_okay=False,
            resolve_path=True,
            show_default=False,
            help="A KubeSchedulerConfiguration file.",
        ),
    ] = None,
    emulated_version: emulating.LeadersVersion = None,
    feature_gates: emulating.FeatureGates = None,
    mode: Annotated[Mode, typer.Option(help="How leaders evaluate.")] = Mode.AUTO,
    decisions: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            writable=True,
            resolve_path=True,
            show_default=False,
            help="File to which leaders append each decision.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            envvar=PORT_VARIABLE,
            min=1,
            max=65535,
            show_default=False,
            help="Serve metrics and health: the first process on this port, each further one on the next.",
        ),
    ] = None,
    metrics_host: options.MetricsHost = LOOPBACK,
    cluster: options.ClusterKind = Kind.STANDALONE,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    otlp: options.Otlp = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when the system is ready; it runs on.")
    ] = False,
    output: Annotated[
        forms.Answer, typer.Option("--output", "-o", help="How to print what was started; with --detach.")
    ] = forms.Answer.TEXT,
) -> None:
    """Run a system on this machine: Redis (unless --redis-url names one), leaders, evaluators and binders."""
    if output is forms.Answer.JSON and not detach:
        raise typer.BadParameter("it goes with --detach", param_hint="--output")
    if log.wants_json() and not detach:
        log.configure()
    asked = emulating.asked(emulated_version, feature_gates)
    possible = asked.possible(on_kubernetes=cluster is Kind.KUBERNETES)
    if config is not None:
        _check(config, possible)
    options.trace_to(otlp)
    system = commands.System(
        data_dir=(data_dir or address.default_data_dir()).absolute(),
        redis_url=redis_url or None,
        name=name or "default",
        leaders=leaders,
        evaluators=evaluators,
        binders=binders,
        config=config,
        mode=mode.value,
        decisions=decisions,
        cluster=options.chosen_cluster(cluster, kubeconfig, kube_context),
        emulated=asked,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
    )
    if detach:
        _start_in_background(system, data_dir, output)
    else:
        supervise.run(system, commands.specs(system), _report)


def down(
    data_dir: options.DataDir = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for it to stop.")] = 60.0,
    output: forms.Printed = forms.Answer.TEXT,
) -> None:
    """Stop the system that 'dsched up' runs with the data folder. Its data stays."""
    folder = (data_dir or address.default_data_dir()).absolute()
    stopped = background.stop(folder, timeout, SystemClock())
    if output is forms.Answer.JSON:
        console.write(forms.as_json(Stopped(stopped is not None, stopped or [])))
    elif stopped is None:
        console.out.print(f"nothing runs with the data folder {folder}", markup=False)
    else:
        console.out.print(f"stopped: {', '.join(stopped) or 'a system that had started nothing yet'}", markup=False)


def _check(config: Path, possible: Sequence[Features]) -> None:
    """
    Raises:
        ConfigError: something is wrong with the file, whatever is emulated.
    """
    # What builds plugins takes longer to import than all the rest, here and in the supervisor; most have no file.
    from dsched.cli.commands import config as configuration
    from dsched.plugins import registry

    if wrong := list(configuration.problems(config, registry.load(), possible)):
        raise ConfigError("\n".join(f"{config}: {problem}" for problem in wrong))


def _report(line: str) -> None:
    """Tell what happens: a log where JSON is asked for, else lines for people."""
    if log.in_json():
        log.logger("dsched.supervisor").info(line)
    else:
        console.out.print(line, markup=False)


def _start_in_background(system: commands.System, data_dir: Path | None, output: forms.Answer) -> None:
    ending.in_order()
    found = background.start(system, SystemClock())
    logs = system.data_dir / "logs"
    if output is forms.Answer.JSON:
        shown = client.shown(found.redis_url)
        console.write(forms.as_json(Started(found.name, shown, found.supervisor_pid, str(system.data_dir), str(logs))))
        return
    chosen = f" --data-dir {system.data_dir}" if data_dir is not None else ""
    console.out.print(
        f"system {found.name!r} runs (supervisor pid {found.supervisor_pid}, Redis {client.shown(found.redis_url)})\n"
        f"logs:  {logs}\n"
        f"next:  {_next(system)}{chosen}\n"
        f"look:  dsched status{chosen}\n"
        f"stop:  dsched down{chosen}",
        markup=False,
    )


def _next(system: commands.System) -> str:
    return "dsched queue" if system.cluster.kind is Kind.KUBERNETES else "dsched apply -f FILE"
