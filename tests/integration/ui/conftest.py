"""The page over a real Redis, served on a port of its own by this process."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from dsched.clock import SystemClock
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.plugins import registry
from dsched.state.client import Store
from dsched.ui.access import Hosts
from dsched.ui.app import Settings, listen, make, make_server
from dsched.ui.live import Look
from dsched.ui.system import System
from tests.integration.cluster.kubernetes.fixtures import api
from tests.integration.workers.processes import wait_until

__all__ = ["api"]

NEVER_S = 3600.0
"""The tests look at the system when they want to."""
PATIENCE_S = 60.0


class Page(httpx.Client):
    """A page that is served, and who visits it."""

    def __init__(self, store: Store, host: str, every_s: float, settings: dict[str, Any]) -> None:
        system = System(
            store, "redis://test", None, registry.intree(), lambda configured: StandaloneCluster(store), SystemClock()
        )
        app, self.live = make(system, Settings(Hosts.of(host, ()), every_s=every_s, **settings))
        listening = listen("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self.server = make_server(app, self.live)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self._thread.start()
        wait_until("the page is served", lambda: self.server.started)
        super().__init__(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_S)

    def look(self) -> Look:
        """Read the system anew."""
        return self.live.look()

    def end(self) -> None:
        """Stop serving."""
        self.close()
        self.server.should_exit = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


MakePage = Callable[..., Page]


@pytest.fixture
def make_page(store: Store) -> Iterator[MakePage]:
    """Makes pages about the test's own system."""
    opened: list[Page] = []

    def make_one(host: str = "127.0.0.1", every_s: float = NEVER_S, **settings: Any) -> Page:
        opened.append(Page(store, host, every_s, settings))
        return opened[-1]

    yield make_one
    for page in opened:
        page.end()


@pytest.fixture
def page(make_page: MakePage) -> Page:
    """Anybody may look, nobody may change anything."""
    return make_page()
