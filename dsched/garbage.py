"""When Python looks for garbage cycles in processes that hold a cluster in memory: seldom, or not at all.

By default it looks through everything that is kept whenever that has grown by a quarter, which took a third of a busy
leader's time, in pauses of 0.1 s with 5,000 nodes and 10,000 pods. Nearly all that is dropped here is freed at once
by its reference count: 10,000 pods leave a thousand objects in cycles, all of which die young.
"""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, MIDDLE, OLD = 50_000, 5, 200
"""Containers that there must be more of for a look at the young ones (some 20 ms), looks at those for one at the next
generation, and so on: at everything only after the number of objects has grown by fifty million."""

MUCH = 5 * YOUNG
"""Containers after which what is young is taken for old unseen. Not after few: what is old is torn down in the wrong
order then, sockets before the connections that would have closed them."""


def look_seldom() -> None:
    """From now on, in this process and those it forks."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


@contextmanager
def not_looked_for() -> Iterator[None]:
    """Not meanwhile: for work that keeps nearly all it makes to its end, and would look through it time and again.
    Where that is much, it counts as old at the end: a look at what a million pods leave would take a second.

    Threads may do it at once, but the first that ends lets it begin again for all.
    """
    if not gc.isenabled():
        yield  # and nothing else: who disabled it may have enabled it by now, and would not do so again
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MUCH:
            gc.freeze()
            gc.unfreeze()  # together they make everything old, at once
        gc.enable()


def leave_at_exit() -> None:
    """Nor when this process ends, which takes a command 0.1 s: the operating system takes its memory back anyway."""
    atexit.register(gc.freeze)
