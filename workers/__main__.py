"""``python -m workers evaluator OPTIONS``: as ``celery -A workers.evaluator worker OPTIONS``, and sooner there.

Celery's own command imports all its commands, one of which brings a prompt with completion and colours: a fifth of what
a worker takes to start.
"""

import sys
from importlib import import_module

from celery.bin.base import CLIContext
from celery.bin.worker import worker

from dsched import garbage

KINDS = ("evaluator", "binder")


def main() -> None:
    """Run the worker that the process's arguments name."""
    kind, *options = sys.argv[1:] or [""]
    if kind not in KINDS:
        sys.exit(f"error: name a kind of worker: {' or '.join(KINDS)}")
    with garbage.not_looked_for():  # modules stay
        app = import_module(f"workers.{kind}").app
    context = CLIContext(app, no_color=True, workdir=None)
    worker.main(options, prog_name=f"python -m workers {kind}", obj=context, auto_envvar_prefix="CELERY_WORKER")


if __name__ == "__main__":
    main()
