"""``dsched leader``: one leader process."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsched import log, tracing
from dsched.cli import emulating, options
from dsched.cli.commands import config as configuration
from dsched.cli.options import (
    ClusterKind,
    DataDir,
    Kubeconfig,
    KubeContext,
    MetricsHost,
    MetricsPort,
    Name,
    Otlp,
    RedisUrl,
    chosen_cluster,
)
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.config import SchedulerConfiguration
from dsched.errors import DschedError
from dsched.framework import plugin_timeout
from dsched.leader import serving
from dsched.leader.evaluators.mode import Mode
from dsched.leader.main import Leader
from dsched.leader.observers.explanations import Explain
from dsched.leader.settings import Settings, default_identity
from dsched.observe.address import LOOPBACK
from dsched.plugins import profiles, registry
from dsched.state import address, location
from dsched.state.client import connect
from dsched.state.lease import LONGEST_S

_log = log.logger(__name__)


def leader(
    context: typer.Context,
    redis_url: RedisUrl = None,
    data_dir: DataDir = None,
    name: Name = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="DSCHED_CONFIG",
            help="KubeSchedulerConfiguration file; the default configuration without it.",
            show_default=False,
        ),
    ] = None,
    emulated_version: emulating.LeadersVersion = None,
    feature_gates: emulating.FeatureGates = None,
    identity: Annotated[
        str | None, typer.Option("--identity", help="Shown as the leader, with the process id.", show_default=False)
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="Where pods are evaluated: here, by evaluators, or whichever is faster.")
    ] = Mode.AUTO,
    lease_s: Annotated[
        float,
        typer.Option(
            "--lease", min=0.5, max=LONGEST_S, help="Seconds the lease lasts; a standby takes over within it."
        ),
    ] = 3.0,
    seed: Annotated[
        int, typer.Option("--seed", envvar="DSCHED_SEED", help="Of the choice among equally good nodes.")
    ] = 0,
    decisions: Annotated[
        Path | None,
        typer.Option("--decisions", help="Append one JSON line a decision to this file.", show_default=False),
    ] = None,
    explain: Annotated[
        Explain,
        typer.Option(
            "--explain",
            envvar="DSCHED_EXPLAIN",
            help="Attempts of which 'dsched explain pod --history' can tell; all takes time for each pod.",
        ),
    ] = Explain.FAILURES,
    cluster: ClusterKind = Kind.STANDALONE,
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOOPBACK,
    plugin_timeout_s: Annotated[
        float,
        typer.Option(
            "--plugin-timeout",
            envvar=plugin_timeout.VARIABLE,
            min=0,
            max=86_400,
            help="Seconds that a plugin may take; 0 for no limit. Workers read the variable.",
        ),
    ] = plugin_timeout.DEFAULT_S,
    otlp: Otlp = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    write_config_to: Annotated[
        Path | None,
        typer.Option(
            "--write-config-to",
            dir_okay=False,
            help="Write the completed configuration to this file, as 'dsched config view' prints it, and exit.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a leader; run two or more and one leads while the others stand by.

    Example: dsched leader --redis-url redis://127.0.0.1:6379/0 --config scheduler.yaml
    """
    log.configure(log_level)
    asked, plugins = emulating.asked(emulated_version, feature_gates), registry.load()
    file = config_file.absolute() if config_file and config_file.name else None
    loaded = profiles.first_accepted(file, plugins, asked.possible(on_kubernetes=cluster is Kind.KUBERNETES))
    if write_config_to is not None:
        _write(loaded, write_config_to)
        return
    options.trace_to(otlp)
    found = address.find(redis_url, data_dir, name)
    store = connect(found.redis_url, found.name)
    settings = Settings(default_identity(identity), lease_s, mode, seed, decisions, explain, plugin_timeout_s)
    chosen = chosen_cluster(cluster, kubeconfig, kube_context)
    traces = tracing.start("leader", settings.identity, found.name)
    opened = opening.open_cluster(chosen, store, loaded, check=True)
    process = Leader(settings, store, opened, loaded, plugins, config_file=file, tracing=traces, asked=asked)
    process.stop_on_signals()
    if metrics_port is None:
        process.run()
        return
    given = given_flags(context)
    served = serving.server(metrics_host, metrics_port, connect(found.redis_url, found.name), process, given)
    served.start()
    try:
        process.run()
    finally:
        served.close()


def _write(configured: SchedulerConfiguration, file: Path) -> None:
    """
    Raises:
        DschedError: the file cannot be written.
    Source: cmd/kube-scheduler/app/options/configfile.go ``LogOrWriteConfig``.
    """
    try:
        file.write_text(configuration.completed_text(configured), encoding="utf-8")
    except OSError as error:
        raise DschedError(f"--write-config-to: {file} cannot be written: {error.strerror or error}") from error
    _log.info("configuration written", extra={"action": "write_config", "file": str(file)})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("leader")(leader)


def given_flags(context: typer.Context) -> Mapping[str, str]:
    """Option name, without dashes, to its value: defaults and values of variables as well, empty where there is none.
    Passwords in URLs are hidden.

    Source: apiserver v0.37 pkg/server/flagz/flagreader.go ``convertNamedFlagSetToFlags``.
    """
    names = {
        parameter.name: max(parameter.opts, key=len).lstrip("-")
        for parameter in context.command.params
        if parameter.param_type_name == "option" and parameter.name in context.params
    }
    return {flag: location.shown(_flag_text(context.params[name])) for name, flag in names.items() if name is not None}


def _flag_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return ",".join(map(_flag_text, value))
    return "" if value is None else str(value)
