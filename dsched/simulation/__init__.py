"""What the leader would decide, without a leader: where the pods of manifests go, and why a pod goes where it goes.

Runs the scheduler's own cycle over a cluster in memory. No process, no worker; only `live_cluster` reads Redis, and
nothing here writes to it.
"""
