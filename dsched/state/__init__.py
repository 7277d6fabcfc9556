"""Scheduling state in Redis: queue, reservations, node usage, lease, node log.

The only room that speaks Redis. Every change is one Lua script that checks the epoch; scripts are
files in ``scripts/``.
Runs in the leader and the workers; reads (never writes) of it serve the command line.
"""

from dsched.state import bare_client as bare_client
