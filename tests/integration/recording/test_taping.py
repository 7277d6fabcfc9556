"""The leader tells while somebody records, and what is told is bounded; nobody waits for the recorder."""

import pytest

from dsched import config
from dsched.config import feature_gates
from dsched.errors import RedisUnavailable, StaleEpoch, StateError
from dsched.metrics import RECORDED, RECORDING_INTERRUPTED
from dsched.model import tape as lines
from dsched.state import keys
from dsched.state import recording as wire
from dsched.state.recording import Listening, RecordingStream, Taken
from tests.integration.leader.rig import Rig
from tests.integration.recording.conftest import MakeTape, comparing, replayed
from tests.integration.recording.scene import make_node, make_pod
from tests.metrics import value


def waiting(rig: Rig) -> int:
    found: int = rig.store.redis.xlen(rig.store.key(keys.RECORDING.name))
    return found


def test_nothing_is_told_when_nobody_records(rig: Rig) -> None:
    before = value(RECORDED)
    rig.apply(make_node("n1"), make_pod("shop/web"))
    led = rig.lead()
    led.term.recording.look()
    led.run()
    assert rig.node_of("shop/web") == "n1"
    assert not rig.store.redis.exists(rig.store.key(keys.RECORDING.name))
    assert value(RECORDED) == before
    assert led.term.memory.cache.heard is None


def test_what_is_written_down_leaves_redis_and_the_leader_stops_when_the_recorder_goes(
    rig: Rig, tape: MakeTape
) -> None:
    rig.apply(make_node("n1"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    assert waiting(rig) == 1
    taped.take()
    assert waiting(rig) == 0
    taped.lines()
    assert not rig.store.redis.exists(rig.store.key(keys.RECORDER.name), rig.store.key(keys.RECORDING.name))
    rig.apply(make_pod("shop/web"))
    led.run()
    assert not led.term.recording.on
    assert not rig.store.redis.exists(rig.store.key(keys.RECORDING.name))


def test_a_recorder_that_was_killed_leaves_nothing_for_good(rig: Rig, tape: MakeTape) -> None:
    rig.apply(make_node("n1"))
    led = rig.lead()
    tape(rig).seen_by(led)
    recorder, recording = rig.store.key(keys.RECORDER.name), rig.store.key(keys.RECORDING.name)
    assert 0 < rig.store.redis.pttl(recorder) <= wire.PRESENT_MS
    assert 0 < rig.store.redis.ttl(recording) <= wire.KEPT_S
    rig.store.redis.delete(recorder)  # as its expiry does
    rig.apply(make_pod("shop/web"))
    led.run()
    led.term.recording.look()
    assert not led.term.recording.on
    assert waiting(rig) == 1


def test_a_recorder_that_does_not_keep_up_gets_a_new_beginning(
    rig: Rig, tape: MakeTape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_WAITING", 3)
    rig.apply(make_node("n1", cpu="64"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    before = value(RECORDING_INTERRUPTED)
    for number in range(5):
        rig.apply(make_pod(f"shop/early-{number}"))
        led.turn()
    led.run()
    assert not led.term.recording.on
    assert value(RECORDING_INTERRUPTED) == before + 1
    assert waiting(rig) == 3
    rig.apply(make_pod("shop/unheard"))
    led.run()
    taped.take()
    led.term.recording.look()
    assert led.term.recording.on
    rig.apply(make_pod("shop/late"))
    led.run()
    told = taped.lines()
    assert sum(isinstance(line, lines.Began) for line in told) == 2
    found = replayed(told, rig.plugins)
    assert (found.beginnings, found.equal, found.first) == (2, True, "")
    tried = {line.pod.key for line in told if isinstance(line, lines.Pending)}
    assert "shop/late" in tried
    assert "shop/unheard" not in tried
    assert rig.node_of("shop/unheard") == "n1"


def test_a_full_redis_ends_the_telling_and_not_the_leading(
    rig: Rig, tape: MakeTape, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.apply(make_node("n1"))
    led = rig.lead()
    tape(rig).seen_by(led)

    def full(*_: object, **__: object) -> Taken:
        raise RedisUnavailable("full")

    monkeypatch.setattr(RecordingStream, "append", full)
    rig.apply(make_pod("shop/web"))
    led.run()
    assert not led.term.recording.on
    assert rig.node_of("shop/web") == "n1"


def test_an_older_leader_tells_nothing(rig: Rig, tape: MakeTape) -> None:
    rig.apply(make_node("n1"))
    old = rig.lead()
    taped = tape(rig)
    taped.seen_by(old)
    taped.take()
    rig.lead()
    old.term.recording.heard(lines.NodeGone(rig.store.name))
    with pytest.raises(StaleEpoch):
        old.term.recording.turned()
    assert waiting(rig) == 0


def test_there_is_one_recorder(rig: Rig) -> None:
    first, second = Listening(rig.store, "one"), Listening(rig.store, "two")
    first.begin()
    with pytest.raises(StateError, match="one records already"):
        second.begin()
    first.stay()
    second.end()
    first.stay()
    rig.store.redis.delete(rig.store.key(keys.RECORDER.name))
    second.begin()
    with pytest.raises(StateError, match="two records now"):
        first.stay()
    second.end()
    assert not rig.store.redis.exists(rig.store.key(keys.RECORDER.name))


def test_entries_that_are_missing_are_told_anew(rig: Rig, tape: MakeTape) -> None:
    rig.apply(make_node("n1"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    taped.take()
    rig.apply(make_pod("shop/lost"))
    led.run()
    rig.store.redis.delete(rig.store.key(keys.RECORDING.name))
    rig.apply(make_pod("shop/kept"))
    led.run()
    taped.take()
    taped.seen_by(led)
    rig.apply(make_pod("shop/late"))
    led.run()
    told = taped.lines()
    assert sum(isinstance(line, lines.Began) for line in told) == 2
    assert replayed(told, rig.plugins).equal
    assert {line.pod.key for line in told if isinstance(line, lines.Pending)} == {"shop/late"}


def test_private_keys_are_not_told(rig: Rig, tape: MakeTape) -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://127.0.0.1:1/
  filterVerb: filter
  ignorable: true
  managedResources: [{name: example.com/x}]
  enableHTTPS: true
  tlsConfig: {certData: Y2VydA==, keyData: c2VjcmV0}
"""
    from dsched import config
    from dsched.config import shown

    document = shown(config.load(text))
    assert "c2VjcmV0" not in str(document)
    assert document["extenders"][0]["urlPrefix"] == "https://127.0.0.1:1/"


def test_a_bound_of_entries_is_the_script_s(rig: Rig) -> None:
    rig.lead()
    listening = Listening(rig.store, "test")
    listening.begin()
    told = RecordingStream(rig.store, int(rig.store.redis.get(rig.store.key(keys.EPOCH.name))))
    assert told.append("someone-else", 1, b"{}\n") is Taken.NOBODY
    assert told.append(listening.token, 1, b"{}\n") is Taken.ADDED
    listening.end()
    assert told.append(listening.token, 2, b"{}\n") is Taken.NOBODY
    assert waiting(rig) == 0


def test_a_recording_says_which_version_decided_and_the_replay_takes_it(rig: Rig, tape: MakeTape) -> None:
    features = feature_gates.features(feature_gates.NEWEST, {"NodeDeclaredFeatures": True, "VolumeLimitScaling": False})
    rig.configuration = config.default(features)
    rig.apply(make_node("n1"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(make_pod("shop/web"))
    led.run()
    told = taped.lines()
    (began,) = [line for line in told if isinstance(line, lines.Began)]
    assert (began.version, began.gates) == ("1.37", "NodeDeclaredFeatures=true,VolumeLimitScaling=false")
    made = comparing(told, rig.plugins)
    assert made.conclude().equal
    assert made.replay is not None
    assert {each.profile.features for each in made.replay._frameworks.values()} == {features}


def test_what_comes_and_goes_is_told_with_the_time(rig: Rig, tape: MakeTape) -> None:
    """Of a pod that ends while nobody waits nothing else would say when."""
    rig.apply(make_node("n1"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    times = []
    for happens in (lambda: rig.apply(make_pod("shop/web")), lambda: rig.delete_pod("shop/web")):
        rig.clock.advance(30)
        times.append(rig.clock.now_ms())
        happens()
        led.run()
    told = taped.lines()
    heard = [line for line in told[told.index(lines.Ready()) :] if isinstance(line, lines.Happened)]
    assert {type(line): line.at_ms for line in heard if isinstance(line, lines.Pending | lines.PodOff)} == {
        lines.Pending: times[0],
        lines.PodOff: times[1],
    }
    assert all(line.at_ms for line in heard)
