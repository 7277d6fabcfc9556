"""``dsched fsck``: checks what is in Redis against the invariants I1 to I6 and I12 to I14 of ``docs/architecture.md``.
Reads only.

A system that runs changes while it is read, so nothing is believed at first sight:

1. *Everything is read once*, in pieces, and each check names what it suspects, with the version of the cluster that the
   leader must have taken in for the suspicion to be a fault (a pod that was deleted a moment ago still has its place).
2. *After a pause only the suspects are read again*: how far the leader is first; then record, entries and reservation
   of each pod as of one moment (one script); then the objects. The same checks run over that. What is suspected both
   times, of the same uid, epoch or state of a node, is a breach, if the leader was so far the second time; else it is
   counted as open. While nobody leads, whatever needs a leader that goes on stays open.

So a running system is not accused falsely; what comes and goes between the two looks is not seen.

The objects are read where they are: those of a standalone cluster in Redis (`stored_objects`), those of a Kubernetes
cluster from its API server, which knows less of the past (`api_objects`). Imports nothing of the leader: a checker that
shared its code would share its mistakes. Serves the command line and tests.
"""
