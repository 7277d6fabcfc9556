"""The Celery processes: evaluators, which judge shards of the node table, and binders, which run the binding cycle.

Started by name (``celery -A workers.evaluator worker``, ``celery -A workers.binder worker``; ``python -m workers KIND``
is the same) and never imported by ``dsched``. Tasks are thin: decode, call, encode.
"""

from dsched import ending

ending.at_once_while_loading()

from dsched.observe import prefork  # noqa: E402

METRICS_FOLDER = prefork.prepare()
"""Where the processes of a worker's pool count, None where no metrics are wanted."""
