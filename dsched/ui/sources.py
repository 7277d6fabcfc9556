"""What the pages and the JSON are made from: both tell the same."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dsched.errors import NotFound
from dsched.model.meta import NodeName, PodKey
from dsched.observe import queue_pods
from dsched.observe.queue_pods import DescribedQueue
from dsched.ui import nodes, pods
from dsched.ui.access import Sessions
from dsched.ui.devices import Classes, ClassTable
from dsched.ui.evaluating import Desk
from dsched.ui.live import Live
from dsched.ui.nodes import NodeTable
from dsched.ui.shares import SharesLook, WaitingTable
from dsched.ui.system import System


@dataclass(frozen=True, slots=True)
class Sources:
    """
    Attributes:
        live: what was seen at the last look.
        table: all nodes.
        classes: all device classes.
        waiting: the first pods of each queue between teams.
        desk: works out what takes a while.
        sessions: of the visitors who have shown the token.
    """

    system: System
    live: Live
    table: NodeTable
    classes: ClassTable
    waiting: WaitingTable
    desk: Desk
    sessions: Sessions

    def read_pod(self, key: PodKey) -> pods.PodAnswer:
        """Everything about a pod."""
        with self.system.cluster(self.system.configuration().config) as cluster:
            return pods.read(self.system.store, cluster, key)

    async def read_node(self, request: Request) -> nodes.Node:
        """The node that an address names, with its pods."""
        name = NodeName(request.path_params["name"])

        def work() -> nodes.Node:
            configured = self.system.configuration().config
            with self.system.cluster(configured) as cluster:
                return nodes.read(self.system.store, configured, cluster, name)

        return await self.desk.run(work)

    async def read_classes(self) -> Classes:
        """All device classes."""

        def work() -> Classes:
            configured = self.system.configuration().config
            with self.system.cluster(configured) as cluster:
                return self.classes.read(configured, cluster)

        return await self.desk.run(work)

    def shares(self) -> SharesLook:
        """What queues between teams had at the last look.

        Raises:
            HTTPException: the system could not be read.
        """
        if self.live.latest.overview is None:
            raise HTTPException(503, self.live.latest.error)
        return self.live.shares.latest

    async def read_queue(self, look: SharesLook, name: str) -> DescribedQueue:
        """A queue between teams, as ``dsched describe queue`` tells it."""

        def work() -> DescribedQueue:
            if name not in look.forest.queues:
                raise NotFound(f"there is no queue {name}")
            configured = self.system.configuration().config
            with self.system.cluster(configured) as cluster:
                first = self.waiting.read(configured, cluster)
            return queue_pods.described(self.system.store, look.forest, name, first)

        return await self.desk.run(work)


def key_of(request: Request) -> PodKey:
    """The pod that an address names."""
    return PodKey(f"{request.path_params['namespace']}/{request.path_params['name']}")
