"""Python runs this at the start of each process that has this folder on PYTHONPATH, the Celery workers' children too:
it takes the fast path away that ``DSCHED_WITHOUT`` names. Only `benchmarks.fast_paths` sets these."""

import os

if name := os.environ.get("DSCHED_WITHOUT"):
    from benchmarks.without.paths import TAKE_AWAY

    TAKE_AWAY[name]()
