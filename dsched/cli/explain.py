"""``dsched explain``: why a pod would go where it would go, now."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from dsched import config
from dsched.cli import choosing, configuration, console, explain_history, explain_report, options
from dsched.cli.explain_history import History
from dsched.clock import SystemClock
from dsched.config import SchedulerConfiguration
from dsched.errors import NotFound
from dsched.framework.interface import Registry
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey
from dsched.plugins import profiles, registry
from dsched.simulation import living
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.explanation_json import encoded
from dsched.state import client, published, workers
from dsched.state import explained as kept
from dsched.state.client import Store


class Output(StrEnum):
    """How the explanation is printed."""

    TABLE = "table"
    JSON = "json"


group = typer.Typer(no_args_is_help=True, help="Why a pod would go where it would go, now.")


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

    A pod that has a node is evaluated as if it had none. Nothing is changed. With --history, exit code 1 when nothing
    is kept of the pod.
    """
    if history:
        _tell_history(options.open_store(redis_url, data_dir, name), wanted, namespace, output)
        return
    plugins = registry.load()
    given = configuration.read(config_file, plugins) if config_file and config_file.name else None
    store = options.open_store(redis_url, data_dir, name)
    configured = given or _of_the_leader(store, plugins)
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    schedulers = [profile.scheduler_name for profile in configured.profiles]
    cluster = options.cluster_of(store, configured)
    try:
        standing = living.read(store, cluster, PodKey(key), schedulers)
        _warn_of_others(store, configured)
        explained = explain(configured, plugins, standing, seed, cluster.get_objects)
    finally:
        cluster.stand_down()
    asked = _asked(explained, nodes)
    if output is Output.JSON:
        console.write(msgspec.json.format(encoded(explained, standing, asked)).decode())
    else:
        console.write("\n".join(explain_report.lines(explained, standing, asked)))


def _tell_history(store: Store, wanted: str, namespace: str | None, output: Output) -> None:
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    found = History(PodKey(key), kept.read(store, PodKey(key)))
    if not found.attempts and not _is_there(store, found.pod):
        raise NotFound(f"there is no pod {key}, and nothing is kept of one")
    if output is Output.JSON:
        console.write(msgspec.json.format(msgspec.json.encode(found)).decode())
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


def _of_the_leader(store: Store, plugins: Registry) -> SchedulerConfiguration:
    """The configuration that the leader publishes; the default one where it has published none, or keeps it back.

    Raises:
        ConfigError: it cannot be read here, e.g. for a plugin that is not installed here.
    """
    with client.reachable(store):
        told = published.read(store)
    if told is None or not told.text:
        return config.default()
    return profiles.parsed(told.text, told.source, plugins)


def _warn_of_others(store: Store, configured: SchedulerConfiguration) -> None:
    """A file that is named may be another one, and a leader may keep its own back; workers tell which they have."""
    with client.reachable(store):
        known = workers.read(store)
    now_ms = SystemClock().now_ms()
    if any(not worker.silent(now_ms) and worker.config != configured.hash for worker in known):
        console.err.print(
            "note: the system's workers have another configuration, or other code; --config names its file",
            markup=False,
        )
