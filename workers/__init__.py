"""The Celery processes: evaluators, which judge shards of the node table, and binders, which run the binding cycle.

Started by name (``celery -A workers.evaluator worker``, ``celery -A workers.binder worker``) and never imported by
``dsched``. Tasks are thin: decode, call, encode.
"""
