"""Every Prometheus metric, in seconds: kube-scheduler's names where the meaning is the same, else ``dsched_``.

`scheduler` declares the former, `own` the latter; `collect` is what the hot path calls. ``docs/metrics.md`` is
written from the declarations.
"""

from dsched.metrics.own import *  # noqa: F403
from dsched.metrics.scheduler import *  # noqa: F403
