"""The source of truth: objects, their watch, binds, conditions and events.

`interface` says what a cluster must do; `standalone` keeps the objects in Redis. Nothing here decides anything.
"""
