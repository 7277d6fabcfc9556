"""Compares what the leader believes with the cluster and Redis, and repairs what differs."""
