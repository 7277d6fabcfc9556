"""What comes from several watches, and what is held back after an outage."""

from dsched.cluster.interface import Change, Event
from dsched.cluster.kubernetes import feed as feed_module
from dsched.cluster.kubernetes.feed import Feed

POD = Event(Change.ADDED, "Pod", "default/web", 7, "u1")


def test_what_one_watch_brings_waits_for_the_others_after_an_outage() -> None:
    feed = Feed()
    feed.lost("Pod")
    feed.lost("Node")
    feed.back("Pod")
    feed.put([POD], 7)
    assert feed.take(0.01) == ([], 0)
    feed.back("Node")
    assert feed.take(60) == ([POD], 7)


def test_one_that_does_not_come_back_is_not_waited_for_for_ever(monkeypatch) -> None:
    monkeypatch.setattr(feed_module, "HELD_S", 0.05)
    feed = Feed()
    feed.lost("Pod")
    feed.lost("VolumeAttachment")
    feed.back("Pod")
    feed.put([POD], 7)
    assert feed.take(60) == ([POD], 7)


def test_nothing_is_held_without_an_outage() -> None:
    feed = Feed()
    feed.back("Pod")
    feed.put([POD], 7)
    assert feed.take(0) == ([POD], 7)
    assert feed.take(0) == ([], 7)


def test_a_pause_ends_when_another_watch_goes_on() -> None:
    feed = Feed()
    feed.lost("Pod")
    feed.lost("Node")
    asked = []

    def over() -> bool:
        if not asked:
            feed.back("Pod")
        asked.append(1)
        return len(asked) > 5

    feed.pause(3600, over)
    assert len(asked) < 5
