"""Garbage cycles are looked for seldom, but they are, or for a while not at all."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from dsched import garbage


class Knot:
    """An object that holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()


def test_cycles_go_once_there_are_many_objects() -> None:
    garbage.look_seldom()
    gc.collect()
    gone: list[str] = []
    weakref.finalize(Knot(), gone.append, "knot")
    kept: list[list[int]] = []
    while not gone and len(kept) <= 2 * garbage.YOUNG:
        kept.append([])
    assert gone
    assert len(kept) > garbage.YOUNG // 2


def test_for_a_while_they_are_not_looked_for() -> None:
    with garbage.not_looked_for():
        assert not gc.isenabled()
        with garbage.not_looked_for():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_they_are_looked_for_again_after_an_error() -> None:
    with pytest.raises(KeyError), garbage.not_looked_for():
        raise KeyError
    assert gc.isenabled()


def test_they_are_looked_for_again_where_another_thread_ends_just_when_one_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = garbage.not_looked_for()
    enabled = gc.isenabled

    def just_before_the_other_ends() -> bool:
        found = enabled()
        other.__exit__(None, None, None)
        return found

    other.__enter__()
    monkeypatch.setattr(gc, "isenabled", just_before_the_other_ends)
    with garbage.not_looked_for():
        monkeypatch.undo()
    assert gc.isenabled()


def test_what_is_left_at_exit_is_not_looked_through() -> None:
    script = (
        "import gc\n"
        "from dsched import garbage\n"
        "class Knot:\n"
        "    def __init__(self): self.itself = self\n"
        "    def __del__(self): print('looked through')\n"
        "garbage.leave_at_exit()\n"
        "Knot()\n"
        "print('ended')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "ended\n"
