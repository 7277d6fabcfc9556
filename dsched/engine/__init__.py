"""What evaluates: a profile's Filter and Score over the node table, class by class, and the choice of a host.

Pure: no I/O, no clock, no process. The leader, the evaluators, the conformance runner and the tests all decide through
`evaluation` and `select`. What a plugin's author reads is in `dsched.framework`.
"""
