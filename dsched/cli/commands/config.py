"""``dsched config``: what a configuration comes to, what is wrong with it, reloading it; the option ``--config``."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dsched import config
from dsched.cli import console, emulating, forms
from dsched.cli.commands.config_reload import reload
from dsched.clock import SystemClock
from dsched.config import Features, SchedulerConfiguration
from dsched.config.feature_gates import DEFAULT
from dsched.errors import ConfigError, PluginError
from dsched.framework.interface import Registry
from dsched.plugins import profiles, registry
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods

_PERCENTAGE = "percentageOfNodesToScore: "
EVERY_NODE = (
    "percentageOfNodesToScore is not set: dsched looks at every node then. The 0 shown is kube-scheduler's default; "
    "written into a file it stands for its adaptive percentage."
)

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="DSCHED_CONFIG",
        help="KubeSchedulerConfiguration file; the default configuration without it.",
        show_default=False,
    ),
]


class Output(StrEnum):
    """How a configuration is printed."""

    YAML = "yaml"
    JSON = "json"


class Checked(msgspec.Struct, frozen=True):
    """A file and what is wrong with it, ``FIELD.PATH: what`` each."""

    file: str
    ok: bool
    errors: list[str]


group = typer.Typer(
    no_args_is_help=True, help="KubeSchedulerConfiguration files: what they come to, what is wrong, reload them."
)


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    group.command(epilog="Example: dsched config reload && dsched status")(reload)
    app.add_typer(group, name="config")


def read(config_file: Path | None, plugins: Registry, features: Features = DEFAULT) -> SchedulerConfiguration:
    """The configuration that ``--config`` names, the default one without it; an empty name is none.

    Raises:
        ConfigError: the file cannot be read, or was refused.
    """
    return profiles.configuration(named(config_file), plugins, features)


def named(config_file: Path | None) -> Path | None:
    """The file that ``--config`` names; an empty name is none."""
    return config_file if config_file and config_file.name else None


@group.command(epilog="Example: dsched config view --config scheduler.yaml")
def view(
    config_file: ConfigFile = None,
    emulated_version: emulating.EmulatedVersion = None,
    feature_gates: emulating.FeatureGates = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.YAML,
) -> None:
    """Print a configuration as it is used: defaults filled in, default plugins merged."""
    configured = read(config_file, registry.load(), emulating.asked(emulated_version, feature_gates).on())
    if output is Output.JSON:
        if configured.percentage_of_nodes_to_score is None:
            console.err.print(f"note: {EVERY_NODE}", markup=False)
        console.write(forms.as_json(config.completed(configured)))
        return
    console.write(completed_text(configured))


def completed_text(configured: SchedulerConfiguration) -> str:
    """A configuration as it is used, as YAML."""
    text = forms.as_yaml(config.completed(configured))
    if configured.percentage_of_nodes_to_score is None:
        return text.replace(f"\n{_PERCENTAGE}", f"\n# {EVERY_NODE}\n{_PERCENTAGE}", 1)
    return text


@group.command(epilog="Example: dsched config check scheduler.yaml")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files to check.", show_default=False)],
    emulated_version: emulating.EmulatedVersion = None,
    feature_gates: emulating.FeatureGates = None,
    output: forms.Printed = forms.Answer.TEXT,
) -> None:
    """Say of each file that it can be used, or what is wrong with it, a line an error; exit code 1 then."""
    features, plugins = emulating.asked(emulated_version, feature_gates).on(), registry.load()
    checked = []
    for path in files:
        errors = [" ".join(line.split()) for line in problems(path, plugins, [features])]
        checked.append(Checked(str(path), not errors, errors))
        if output is forms.Answer.TEXT:
            for line in errors or ["ok"]:
                console.out.out(f"{path}: {line}", highlight=False)
    if output is forms.Answer.JSON:
        console.write(forms.as_json(checked))
    if not all(each.ok for each in checked):
        raise typer.Exit(1)


def problems(path: Path, plugins: Registry, possible: Sequence[Features]) -> Iterator[str]:
    """What is wrong with a file, ``FIELD.PATH: what`` each; the profiles are built with the plugins there are.

    Args:
        possible: what may be emulated; the file is right if it is for one of them.
    """
    try:
        configured = profiles.first_accepted(path, plugins, possible)
    except ConfigError as error:
        yield from error.errors or [str(error).removeprefix(f"{path} ")]
        return
    if configured.extenders:
        yield from _built("extenders", replace(configured, profiles=()), plugins)
    for number, profile in enumerate(configured.profiles):
        yield from _built(f"profiles[{number}]", replace(configured, profiles=(profile,), extenders=()), plugins)


def _handle() -> LeaderHandle:
    """What plugins may reach where there is nothing yet."""
    clock = SystemClock()
    return LeaderHandle(Memory(), WaitingPods(clock), PendingPods(clock, Backoff()), clock)


def _built(field: str, configured: SchedulerConfiguration, plugins: Registry) -> Iterator[str]:
    """What building the frameworks comes to."""
    try:
        profiles.frameworks(configured, plugins, _handle())
    except PluginError as error:
        yield f"{field}: {error}"
