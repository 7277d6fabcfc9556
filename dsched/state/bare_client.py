"""Imports the Redis client without OpenTelemetry, before any other module here imports it.

Where OpenTelemetry is installed the client loads its metrics, and what finds out about host and process for them: a
quarter of what the client takes to import, in each process, for what is used only where one asks the client for it.
"""

import sys

_NAME = "opentelemetry"

if _NAME not in sys.modules and "redis" not in sys.modules:
    sys.modules[_NAME] = None  # type: ignore[assignment]  # what is None here cannot be imported
    try:
        import redis as redis
    finally:
        del sys.modules[_NAME]
