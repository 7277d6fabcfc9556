"""The leader's process: takes in the cluster, runs the scheduler, writes its decisions, hands them out to be bound.

A pod's way through this room: `sources` → `intake` → `dsched.scheduler.queue` (and the queue in Redis) →
`dsched.scheduler.cycle` decides, with `evaluators` where they are asked → `commit` reserves → `binders` hand out and
take back what came of it → or `failure` puts it back into the queue. `takeover` brings a new leader up to date; `term`
calls them in turn; `main` is the process. Nothing is kept here that a new leader could not rebuild from Redis and the
cluster.
"""
