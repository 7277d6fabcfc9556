"""The leader: hears of the cluster, keeps the queue, decides, hands binds out and takes back what did not work.

A pod's way through this room: `intake` → `pending` (and the queue in Redis) → `cycle` decides, with `dispatch` where
evaluators are asked → `commit` reserves → `binding` hands out and settles → or `failure` puts it back. `takeover` puts
a new leader in the picture; `loop` calls them in turn; `main` is the process. Nothing here is kept that a new leader
could not rebuild from Redis and the cluster.
"""
