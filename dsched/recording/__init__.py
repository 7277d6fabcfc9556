"""Recordings of a running system: written from outside, and run again with the same or another configuration.

What a recording is made of is in `dsched.model.tape`; the leader's part is `dsched.leader.observers.recording`.
"""
