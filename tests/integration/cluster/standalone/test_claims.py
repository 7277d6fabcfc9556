"""Claims for devices in Redis: they are written only while their pod holds the devices."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.device_claims import KEY, UID, WEB, WEB_UID, claim, now, write
from tests.contract.systems import Standalone
from tests.manifests import pod_manifest
from tests.redis_server import RedisServer


@pytest.fixture
def system(redis_server: RedisServer, tmp_path: Path) -> Iterator[Standalone]:
    found = Standalone(redis_server.url, tmp_path)
    found.put(claim(), pod_manifest(WEB, uid=WEB_UID))
    yield found
    found.close()


@pytest.mark.parametrize("text", [None, "{}", "nonsense", '{"claim-2":{"gpu.example.com/n1/gpu-0":"1"}}'])
def test_who_comes_too_late_gives_nothing_away(system: Standalone, text: str | None) -> None:
    key = system.store.key("devices")
    system.store.redis.hdel(key, WEB_UID)
    if text is not None:
        system.store.redis.hset(key, WEB_UID, text)
    (told,) = system.cluster.allocate_claims([write("gpu-0")])
    assert told == f"the devices of resourceclaim {KEY} are no longer held for its pod"
    assert "status" not in now(system)
    system.hold(WEB_UID, UID, "gpu-1")
    (told,) = system.cluster.allocate_claims([write("gpu-0")])
    assert told == f"the devices of resourceclaim {KEY} are no longer held for its pod"
    system.hold(WEB_UID, UID, "gpu-0")
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    system.hold(WEB_UID, UID)
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""], "what is written already needs no reservation"
