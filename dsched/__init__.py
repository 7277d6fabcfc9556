"""dsched: a Kubernetes-compatible scheduler that runs as many processes around one Redis.

Rooms, in the order in which they may import one another: ``config``, ``errors``, ``clock``, ``log`` and ``metrics`` at
the base, then ``model`` < ``arithmetic`` < ``framework`` < ``plugins`` < ``state`` < ``cluster`` and ``observe`` <
``leader`` < ``conformance`` < ``cli``. The Celery processes live beside this package, in ``workers``.
"""

__version__: str


def __getattr__(name: str) -> str:
    """The version is looked up when it is asked for: most processes never do."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    found = globals()[name] = version(__name__)
    return found
