"""The scheduler: cache, queue, hints, cycle, waiting pods, nominations, and what it needs of a store (`ports`).

Without Redis, Celery, threads or a process. The leader runs it over `dsched.state`; simulation, replay, explanations,
conformance and tests run the same code over memory.
"""
