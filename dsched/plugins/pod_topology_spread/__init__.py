"""PodTopologySpread, and what only it needs."""
