"""dsched: a Kubernetes-compatible scheduler that runs as many processes around one Redis.

Rooms, in the order in which they may import one another: ``config``, ``errors``, ``clock``, ``log`` and ``metrics`` at
the base, then ``model`` < ``arithmetic`` < ``framework`` < ``plugins`` < ``state`` < ``cluster`` < ``leader`` <
``conformance`` < ``cli``. The Celery processes live beside this package, in ``workers``.
"""

from importlib.metadata import version

__version__ = version("dsched")
