"""``dsched explain``: why a pod, or a pod group, would go where it would go, now."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from dsched import config
from dsched.cli import choosing, console, emulating, forms, options
from dsched.cli.commands import config as configuration
from dsched.cli.render import explain as explain_report
from dsched.cli.render import explain_group as explain_group_report
from dsched.cli.render import explain_history, explain_schema
from dsched.cli.render.explain_history import History
from dsched.cli.render.explain_schema import Form
from dsched.clock import SystemClock
from dsched.errors import NotFound
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey
from dsched.plugins import registry
from dsched.simulation import group_explanation_json, live_cluster, live_group
from dsched.simulation.configured import LeadersConfiguration
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.explanation_json import encoded
from dsched.simulation.group_explanation import explain_group
from dsched.state import attempt_history as kept
from dsched.state.client import Store


class Output(StrEnum):
    """How the explanation is printed."""

    TABLE = "table"
    JSON = "json"


group = typer.Typer(no_args_is_help=True, help="Why a pod or a pod group would go where it would go, now.")


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.add_typer(group, name="explain")


@group.command("pod", epilog="Example: dsched explain pod shop/web-1 --nodes n1,n2")
def pod(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]NAME", show_default=False)],
    namespace: choosing.Namespace = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", help="Only these nodes of the answer: n1,n2.", show_default=False)
    ] = None,
    config_file: options.SystemConfigFile = None,
    emulated_version: emulating.SystemVersion = None,
    feature_gates: emulating.FeatureGates = None,
    seed: Annotated[int, typer.Option("--seed", help="The leader's, of the choice among equally good nodes.")] = 0,
    history: Annotated[
        bool, typer.Option("--history", help="What was said at its last attempts instead; nothing is evaluated.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Evaluate a pod on every node as the leader would now: who rejects it, how it scores, which node it would get.

    A pod that has a node is evaluated as if it had none, but for one that waits there for the room that a resize needs.
    Nothing is changed. With --history, exit code 1 when nothing
    is kept of the pod.
    """
    if history:
        _tell_history(options.open_store(redis_url, data_dir, name), wanted, namespace, output)
        return
    plugins = registry.load()
    emulated, file = emulating.asked(emulated_version, feature_gates), configuration.named(config_file)
    store = options.open_store(redis_url, data_dir, name)
    chosen = LeadersConfiguration(store, plugins, file, emulated).read()
    configured = chosen.config
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    schedulers = [profile.scheduler_name for profile in configured.profiles]
    cluster = options.cluster_of(store, configured)
    try:
        standing = live_cluster.read(store, cluster, PodKey(key), schedulers, configured.features)
        if note := chosen.note(store, SystemClock().now_ms()):
            console.err.print(f"note: {note}", markup=False)
        explained = explain(configured, plugins, standing, seed, cluster.get_objects)
    finally:
        cluster.stand_down()
    asked = _asked(explained, nodes)
    if output is Output.JSON:
        console.write(msgspec.json.format(encoded(explained, standing, asked)).decode())
    else:
        console.write("\n".join(explain_report.lines(explained, standing, asked)))


@group.command("podgroup", epilog="Example: dsched explain podgroup default/train")
def podgroup(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]NAME", show_default=False)],
    namespace: choosing.Namespace = None,
    config_file: options.SystemConfigFile = None,
    emulated_version: emulating.SystemVersion = None,
    feature_gates: emulating.FeatureGates = None,
    seed: Annotated[int, typer.Option("--seed", help="The leader's, of the choice among equally good nodes.")] = 0,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Try a pod group in each of its placements as the leader would now: what each lacks, which one the group would
    get, where its pods would go, and who would have to go for them.

    Pods of it that have nodes stay there; where none waits, it is evaluated as if none had a node. Nothing is changed.
    """
    plugins, store = registry.load(), options.open_store(redis_url, data_dir, name)
    asked = emulating.asked(emulated_version, feature_gates)
    chosen = LeadersConfiguration(store, plugins, configuration.named(config_file), asked).read()
    configured = chosen.config
    (key,) = choosing.keys(kinds.POD_GROUP, [wanted], namespace)
    schedulers = [profile.scheduler_name for profile in configured.profiles]
    cluster = options.cluster_of(store, configured)
    try:
        standing = live_group.read(store, cluster, key, schedulers)
        if note := chosen.note(store, SystemClock().now_ms()):
            console.err.print(f"note: {note}", markup=False)
        explained = explain_group(configured, plugins, standing, seed, cluster.get_objects)
    finally:
        cluster.stand_down()
    if output is Output.JSON:
        console.write(msgspec.json.format(group_explanation_json.encoded(explained, standing)).decode())
    else:
        console.write("\n".join(explain_group_report.lines(explained, standing)))


@group.command("schema", epilog="Example: dsched explain schema history")
def schema(
    form: Annotated[Form, typer.Argument(help="What pod -o json prints, with --history, and podgroup.")] = (
        Form.EXPLANATION
    ),
) -> None:
    """Print the JSON schema of what explain pod and explain podgroup print with -o json."""
    console.write(forms.as_json(explain_schema.schema(form)))


def _tell_history(store: Store, wanted: str, namespace: str | None, output: Output) -> None:
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    found = History(explain_history.VERSION, PodKey(key), kept.read(store, PodKey(key)))
    if not found.attempts and not _is_there(store, found.pod):
        raise NotFound(f"there is no pod {key}, and nothing is kept of one")
    if output is Output.JSON:
        console.write(forms.as_json(found))
    else:
        console.write("\n".join(explain_history.lines(found, SystemClock().now_ms())))
    if not found.attempts:
        raise typer.Exit(1)


def _is_there(store: Store, key: PodKey) -> bool:
    """Whether the cluster has the pod."""
    cluster = options.cluster_of(store, config.default())
    try:
        return cluster.get_pods([key])[0] is not None
    finally:
        cluster.stand_down()


def _asked(explained: Explanation, nodes: str | None) -> Sequence[NodeName] | None:
    """The nodes asked for, None for all."""
    if nodes is None:
        return None
    asked = [NodeName(name) for name in nodes.split(",") if name]
    known = {node.name for node in explained.nodes}
    missing = [name for name in asked if name not in known]
    if missing:
        raise NotFound(f"there is no node {', '.join(missing)}")
    return asked
