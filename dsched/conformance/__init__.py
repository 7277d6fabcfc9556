"""Runs vectors recorded from kube-scheduler through dsched and names the differences.

Reads what it is given; no cluster, no Redis.
"""
