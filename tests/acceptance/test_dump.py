"""SIGUSR2 to the leaders of ``dsched up``: the one that leads writes what it holds, and all go on."""

import os
import signal

from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer


def test_the_one_that_leads_writes_what_it_holds(make_system: MakeSystem, redis_server: RedisServer) -> None:
    system = make_system(redis_url=redis_server.url, system="dumped")
    system.up("--leaders", "2", "--evaluators", "0", "--binders", "1", "--mode", "local")
    system.apply(node_manifest("n1"), pod_manifest("shop/web"), pod_manifest("shop/no", nodeSelector={"there": "none"}))
    system.settle()
    logs = {f"leader-{number}": system.data_dir / "logs" / f"leader-{number}.log" for number in (1, 2)}

    def says(words: str) -> bool:
        """Asked until somebody does: a leader that is still being started does not hear it."""
        for name, log in logs.items():
            if "dump ends" not in log.read_text():
                os.kill(system.pids()[name], signal.SIGUSR2)
        return any(words in log.read_text() for log in logs.values())

    wait_until("it is written", lambda: says("dump ends"))
    wait_until("the other one has nothing", lambda: says("nothing to dump"))
    text = "".join(log.read_text() for log in logs.values())
    assert "[shop/web] pod on a node action=dump " in text
    assert "[shop/no] pod in the queue action=dump " in text
    assert "node in the cache action=dump node=n1 pods=1 " in text
    assert all(each["restarts"] == 0 for each in system.status()["children"])
