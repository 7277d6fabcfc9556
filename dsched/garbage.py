"""When Python looks for garbage cycles in processes that hold a cluster in memory: seldom.

By default it looks through everything that is kept whenever that has grown by a quarter, which took a third of a busy
leader's time, in pauses of 0.1 s with 5,000 nodes and 10,000 pods. Nearly all that is dropped here is freed at once
by its reference count: 10,000 pods leave a thousand objects in cycles, all of which die young.
"""

import gc

YOUNG, MIDDLE, OLD = 50_000, 5, 200
"""Containers that there must be more of for a look at the young ones (some 20 ms), looks at those for one at the next
generation, and so on: at everything only after the number of objects has grown by fifty million."""


def look_seldom() -> None:
    """From now on, in this process and those it forks."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)
