"""Clocks that jump by hours: Redis' own between two leaders, as after a fail-over to a host whose clock is wrong, and
while one leads; those of hosts are tried by `tests/faults`, scenario 24."""

from unittest.mock import patch

from dsched.clock import ManualClock
from dsched.cluster.interface import BindVerdict
from dsched.fsck.inspection import inspect
from dsched.leader.evaluators.router import Mode, Router
from dsched.state import keys, lease, workers
from dsched.state import time as redis_time
from dsched.state.lease import Lease
from dsched.state.workers import Worker
from tests.attacks.attack import Stand, attack
from tests.attacks.contents import Leading, stepped
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest

HOUR_S = 3600.0
LOOKS = 4
"""So often it is waited until all is at rest, with 12 s each time: longer than the longest pause of a pod."""


@attack(
    "the clock of Redis jumps by hours, ahead or back, between two leaders",
    sees="nothing: pods of before and new ones are tried as soon as ever, whatever their times say",
)
def clock_between_leaders(stand: Stand) -> None:
    stepped(stand)
    rig = Rig(stand.store(), stand.folder)
    leading = Leading(rig)
    made = 0
    rig.apply(node_manifest("node-0", pods="1000"))
    for _ in range(max(2, stand.rounds // 4)):
        zone = f"zone-{made}"
        waiting = [f"default/waits-{made + number}" for number in range(3)]
        rig.apply(*(pod_manifest(key, nodeSelector={"zone": zone}) for key in waiting))
        leading.settle()
        failed = f"default/failed-{made}"
        _fail(rig, leading, failed)
        rig.clock.advance(stand.rng.choice([-1, 1]) * stand.rng.uniform(0.1, 12) * HOUR_S)
        leading.led = None
        new = f"default/new-{made}"
        rig.apply(pod_manifest(new))
        if stand.rng.random() < 0.5:
            leading.settle()
        rig.apply(node_manifest(f"node-{zone}", labels={"zone": zone}, pods="1000"))
        later = f"default/later-{made}"
        rig.apply(pod_manifest(later, nodeSelector={"zone": zone}))
        made += 3
        for _ in range(LOOKS):
            leading.settle()
        missing = [key for key in (failed, *waiting, new, later) if not rig.node_of(key)]
        assert not missing, f"not bound for long: {missing} {[rig.record(key) for key in missing]}"
    breaches = inspect(rig.store, rig.clock, pause_s=0.0).breaches
    assert not breaches, breaches


def _fail(rig: Rig, leading: Leading, pod: str) -> None:
    """Have the bind of a new pod fail, so that it pauses."""
    led = leading.led
    assert led is not None
    rig.apply(pod_manifest(pod))
    led.turn()
    for request in led.requests():
        rig.binder.says(request, BindVerdict.REFUSED, "no luck")
    led.turn()
    assert rig.queue(pod) == "backoff", rig.record(pod)


@attack(
    "the clock of Redis jumps by hours while a leader leads",
    sees="nothing: workers stay known and are asked; a lease that it makes long is cut to a minute",
)
def clock_while_leading(stand: Stand) -> None:
    stepped(stand)
    store, now_ms = stand.store(), redis_time.now_ms
    rig = Rig(store, stand.folder, clock=ManualClock(now_ms(store)))
    leading = Leading(rig)
    for _ in range(max(2, stand.rounds // 5)):
        leading.settle()
        assert leading.led is not None
        ahead_ms = round(stand.rng.choice([-1, 1]) * stand.rng.uniform(0.1, 12) * HOUR_S * 1000)
        with patch.object(redis_time, "now_ms", lambda given, ahead_ms=ahead_ms: now_ms(given) + ahead_ms):
            for name in ("evaluator", "binder"):
                workers.note(store, Worker(name, name, redis_time.now_ms(store), rig.configuration.hash, "standalone"))
            leading.led.term.ping()
            assert {each.name for each in workers.read(store)} == {"evaluator", "binder"}, f"forgotten: {ahead_ms}"
            given = (store, leading.led.epoch, rig.configuration.hash, leading.led.term.memory.cache)
            router = Router(Mode.DISTRIBUTED, *given, leading.led.dispatcher, rig.clock)
            assert router._evaluators() == ["evaluator"], f"not asked any more: {ahead_ms}"
        left_by_a_jump = stand.rng.randrange(120, 86_400) * 1000
        store.redis.pexpire(store.key(keys.LEADER.name), left_by_a_jump)
        standby = Lease(store, "standby", 3000)
        assert not standby.acquire()
        assert standby.left_s <= lease.LONGEST_S
        assert store.redis.pttl(store.key(keys.LEADER.name)) <= lease.LONGEST_S * 1000
