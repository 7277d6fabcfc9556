"""The decision: extension points, the node table, and the one engine that runs Filter and Score over it.

Pure: no I/O, no clock, no process. The leader, the evaluators, the conformance runner and the tests all decide through
`evaluate` and `select`.
"""
