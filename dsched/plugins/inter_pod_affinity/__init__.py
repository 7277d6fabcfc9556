"""InterPodAffinity, and what only it needs."""
