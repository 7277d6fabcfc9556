"""Which claims have a volume to themselves, kept up to date: the same as counting anew."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.snapshot import Snapshot
from dsched.model.volumes import CLAIM, PERSISTENT_VOLUME
from dsched.plugins.volumes import sharing
from dsched.plugins.volumes.sharing import Sharing
from tests.storage import csi, make_claim, make_volume, put, world

NAMES = ("a", "b", "c", "d")


def volume(name: str, handle: str) -> Any:
    source: dict[str, Any] = {"csi": csi("driver", handle)} if handle else {"hostPath": {"path": "/"}}
    return make_volume(name, **source)


def alone(found: Sharing) -> list[bool]:
    return [found.alone(f"shop/{name}") for name in NAMES]


def test_of_a_claim_that_shares_nothing() -> None:
    snapshot = world((), (), make_claim("shop/a", volume="a"), volume("a", "one"))
    assert sharing.of(snapshot) is sharing.of(snapshot)
    assert alone(sharing.of(snapshot)) == [True, False, False, False]  # of the others there is none
    put(snapshot, make_claim("shop/b"), make_claim("shop/c", volume="c"))  # without a volume
    assert alone(sharing.of(snapshot)) == [True, False, False, False]


def test_a_volume_that_another_claim_names_or_a_driver_knows_twice() -> None:
    snapshot = world((), (), *(make_claim(f"shop/{name}", volume=name) for name in "abc"))
    put(snapshot, volume("a", "one"), volume("b", "one"), volume("c", "three"))
    assert alone(sharing.of(snapshot))[:3] == [False, False, True]
    put(snapshot, volume("b", "two"), make_claim("shop/d", volume="c"))
    assert alone(sharing.of(snapshot)) == [True, True, False, False]
    snapshot.drop(CLAIM, "shop/d")
    assert alone(sharing.of(snapshot))[:3] == [True, True, True]


def test_volumes_that_no_driver_has_to_attach_are_not_told_apart() -> None:
    snapshot = world((), (), *(make_claim(f"shop/{name}", volume=name) for name in "ab"), volume("a", ""))
    put(snapshot, volume("b", ""))
    assert alone(sharing.of(snapshot))[:2] == [True, True]


def test_a_volume_that_makes_no_sense_is_nobody_elses_trouble() -> None:
    snapshot = world((), (), make_claim("shop/a", volume="a"), volume("a", "one"), make_volume("b", "much"))
    assert alone(sharing.of(snapshot))[0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.sampled_from(NAMES), st.sampled_from((*NAMES, ""))),
        st.tuples(st.just("volume"), st.sampled_from(NAMES), st.sampled_from(("one", "two", ""))),
        st.tuples(st.just("gone"), st.sampled_from((CLAIM, PERSISTENT_VOLUME)), st.sampled_from(NAMES)),
        st.just(("ask",)),
        st.just(("clear",)),
    ),
    max_size=30,
)


@settings(max_examples=200)
@given(STEPS)
def test_kept_up_to_date(steps: list[Any]) -> None:
    snapshot = Snapshot()
    kept = sharing.of(snapshot)
    for step in (*steps, ("ask",)):
        match step:
            case ("claim", name, wanted):
                put(snapshot, make_claim(f"shop/{name}", volume=wanted))
            case ("volume", name, handle):
                put(snapshot, volume(name, handle))
            case ("gone", kind, name):
                snapshot.drop(kind, f"shop/{name}" if kind == CLAIM else name)
            case ("clear",):
                snapshot.clear()
            case _:
                assert alone(kept) == alone(Sharing(snapshot))
