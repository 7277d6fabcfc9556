"""The lease on a real Redis: one leads, epochs only grow, and who lost it hears so."""

import threading

import pytest

from dsched.errors import StaleEpoch
from dsched.state import keys
from dsched.state.lease import LONGEST_S, Lease, holder
from dsched.state.queue import Queue
from tests.integration.state.support import LONG_MS, wait_until

SHORT_MS = 30


def test_one_of_two_contenders_leads(store):
    one, other = Lease(store, "one", LONG_MS), Lease(store, "other", LONG_MS)
    assert holder(store) is None
    assert one.acquire()
    assert not other.acquire()
    assert (one.epoch, other.epoch) == (1, 0)
    assert holder(store) == ("one", 1)
    assert 0 < store.redis.pttl(store.key("leader")) <= LONG_MS


def test_of_many_who_ask_at_once_one_leads_each_time(store, connect):
    for round_ in range(1, 4):
        leases = [Lease(connect(store.name), f"leader-{number}", LONG_MS) for number in range(8)]
        start = threading.Barrier(len(leases))

        def ask(lease: Lease, start: threading.Barrier = start) -> None:
            start.wait()
            lease.acquire()

        threads = [threading.Thread(target=ask, args=(lease,)) for lease in leases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        leading = [lease for lease in leases if lease.epoch]
        assert [(lease.identity, lease.epoch) for lease in leading] == [holder(store)]
        assert leading[0].epoch == round_
        leading[0].release()


def test_a_lease_that_is_not_renewed_runs_out_and_its_holder_hears_so(store):
    one, other = Lease(store, "one", SHORT_MS), Lease(store, "other", LONG_MS)
    one.acquire()
    wait_until("the other one leads", other.acquire)
    assert other.epoch == 2
    with pytest.raises(StaleEpoch):
        one.renew()
    with pytest.raises(StaleEpoch):
        Queue(store, one.epoch).recover()
    assert holder(store) == ("other", 2)


def test_renewing_keeps_the_lease_and_the_epoch(store):
    lease = Lease(store, "one", SHORT_MS)
    lease.acquire()
    lease.ttl_ms = LONG_MS
    lease.renew()
    assert holder(store) == ("one", 1)
    assert store.redis.pttl(store.key("leader")) > SHORT_MS


def test_who_overslept_goes_on_under_its_epoch_when_nobody_else_led(store):
    lease = Lease(store, "one", SHORT_MS)
    lease.acquire()
    wait_until("the lease has run out", lambda: holder(store) is None)
    lease.renew()
    assert holder(store) == ("one", 1)


def test_a_process_that_asks_again_leads_under_a_new_epoch(store):
    lease = Lease(store, "one", LONG_MS)
    assert lease.acquire()
    assert lease.acquire()
    assert lease.epoch == 2
    with pytest.raises(StaleEpoch):
        Queue(store, 1).recover()


@pytest.mark.parametrize(("first", "second"), [("host a", "host"), ("host", "host a"), ("host a", "host b")])
def test_identities_with_spaces_are_not_taken_for_one_another(store, first, second):
    one = Lease(store, first, LONG_MS)
    one.acquire()
    assert not Lease(store, second, LONG_MS).acquire()
    assert holder(store) == (first, 1)
    assert one.acquire()


def test_release_lets_a_standby_lead_at_once(store):
    one, other = Lease(store, "one", LONG_MS), Lease(store, "other", LONG_MS)
    one.acquire()
    one.release()
    assert (one.epoch, holder(store)) == (0, None)
    assert other.acquire()
    assert other.epoch == 2


def test_all_who_stand_by_are_woken_when_the_lease_is_given_back(store, connect):
    """Also who has asked before and begins to wait only afterwards; each time, and not by an earlier leader's word."""
    one = Lease(store, "one", LONG_MS)
    stores = [connect(store.name) for _ in range(3)]
    standbys = [Lease(each, f"standby-{number}", LONG_MS) for number, each in enumerate(stores)]
    connections = {each.redis.client_id() for each in stores[:2]}

    def blocked() -> set[int]:
        return {int(each["id"]) for each in store.redis.client_list() if "b" in each["flags"]}

    for _ in range(2):
        assert one.acquire()
        assert [standby.acquire() for standby in standbys] == [False] * 3
        for standby in standbys:
            assert 0 < standby.left_s <= LONG_MS / 1000
            standby.wait(0.001)  # nothing has been given back since
        assert not standbys[0].acquire()
        waiting = [threading.Thread(target=standby.wait, args=(600.0,)) for standby in standbys[:2]]
        for thread in waiting:
            thread.start()
        wait_until("two wait", lambda: connections <= blocked())
        one.release()
        standbys[2].wait(600.0)
        for thread in waiting:
            thread.join(60.0)
        assert not any(thread.is_alive() for thread in waiting)


def test_release_by_who_no_longer_leads_leaves_the_leader_alone(store):
    one, other = Lease(store, "one", SHORT_MS), Lease(store, "other", LONG_MS)
    one.acquire()
    wait_until("the other one leads", other.acquire)
    one.release()
    Lease(store, "never led", LONG_MS).release()
    assert holder(store) == ("other", 2)


def test_epochs_do_not_go_back_though_redis_loses_everything(store):
    one, other = Lease(store, "one", LONG_MS), Lease(store, "other", LONG_MS)
    for _ in range(3):
        one.acquire()
    other.acquire()
    store.redis.delete(*store.names(""))
    with pytest.raises(StaleEpoch):
        one.renew()
    assert one.acquire()
    assert one.epoch == 4
    assert store.redis.get(store.key(keys.EPOCH.name)) == b"4"
    one.release()
    assert other.acquire()
    assert other.epoch == 5


def test_who_has_only_stood_by_does_not_lead_under_an_epoch_that_redis_has_lost(store):
    one, standby = Lease(store, "one", LONG_MS), Lease(store, "standby", LONG_MS)
    for _ in range(3):
        one.acquire()
    assert not standby.acquire()
    store.redis.delete(*store.names(""))
    assert standby.acquire()
    assert standby.epoch == 4
    with pytest.raises(StaleEpoch):
        one.renew()


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_an_epoch_is_not_given_twice_though_redis_loses_its_last_second(store, kept):
    lease = Lease(store, "one", LONG_MS)
    for _ in range(3):
        lease.acquire()
    store.redis.set(store.key(keys.EPOCH.name), kept)
    assert lease.acquire()
    assert lease.epoch == 4


def test_an_epoch_that_redis_has_counted_further_is_kept(store):
    lease = Lease(store, "one", LONG_MS)
    lease.acquire()
    store.redis.set(store.key(keys.EPOCH.name), 40)
    assert lease.acquire()
    assert lease.epoch == 41


def test_a_lease_without_an_end_in_sight_is_cut_and_its_holder_keeps_it(store):
    """Somebody wrote it, or Redis' clock went back by hours right after it was taken."""
    holds, asks = Lease(store, "holds", 3000), Lease(store, "asks", 3000)
    assert holds.acquire()
    store.redis.pexpire(store.key(keys.LEADER.name), LONG_MS)
    assert not asks.acquire()
    assert LONG_MS / 2000 < asks.cut_s <= LONG_MS / 1000
    assert asks.left_s == LONGEST_S
    assert store.redis.pttl(store.key(keys.LEADER.name)) <= LONGEST_S * 1000
    assert not asks.acquire()
    assert asks.cut_s == 0
    holds.renew()
    assert holder(store) == ("holds", 1)
    assert store.redis.pttl(store.key(keys.LEADER.name)) <= 3000
