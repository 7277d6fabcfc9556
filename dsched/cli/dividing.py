"""The option that divides a cluster by other queues, and the file that it names."""

from typing import Annotated

import typer

from dsched.config import SchedulerConfiguration
from dsched.errors import ManifestError
from dsched.manifests import kinds
from dsched.manifests.load import Manifest, load
from dsched.model.meta import from_builtins
from dsched.model.queues import Queue
from dsched.plugins.fair_share import plugin as fair_share
from dsched.scheduler.quota.tree import Tree

Queues = Annotated[
    str | None,
    typer.Option(
        "--queues",
        metavar="FILE",
        help="Divide the cluster by the queues of this file or folder, and by none of its own.",
        show_default=False,
    ),
]


def read(path: str) -> list[Manifest]:
    """The queues of a file.

    Raises:
        ManifestError: it cannot be read, holds anything else, or a queue of it can have no pods, with the place.
    """
    queues = load([path])
    others = [f"{each.origin}: a {each.kind.name}, where only queues may be" for each in queues if not is_queue(each)]
    if others:
        raise ManifestError(others)
    broken = Tree(from_builtins(each.value, Queue) for each in queues).broken
    if broken:
        raise ManifestError(
            [f'{each.origin}: queue "{each.key}": {broken[each.key]}' for each in queues if each.key in broken]
        )
    return queues


def is_queue(manifest: Manifest) -> bool:
    """Whether it is one."""
    return manifest.kind is kinds.QUEUE


def check_plugin(configured: SchedulerConfiguration) -> None:
    """
    Raises:
        BadParameter: the configuration takes no notice of queues.
    """
    if fair_share.arguments(configured) is None:
        problem = "queues divide nothing without the plugin FairShare; enable it with --config, as docs/queues.md does"
        raise typer.BadParameter(problem, param_hint="--queues")
