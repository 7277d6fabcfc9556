"""What a plugin's author reads: extension points, statuses, the node table, pods; and what calls the plugins.

Pure: no I/O, no clock, no process. What runs the extension points over the node table is in `dsched.engine`.
"""
