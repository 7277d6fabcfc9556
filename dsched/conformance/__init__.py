"""Runs vectors recorded from kube-scheduler v1.34.1 through dsched and names the differences.

Reads what it is given; no cluster, no Redis.
"""
