"""What the leader would decide, without a leader: where the pods of manifests go, and why a pod goes where it goes.

Decides with the leader's own cycle over a cluster in memory. No process, no worker; only `living` reads Redis, and
nothing here writes to it.
"""
