"""DefaultPreemption, and what only it needs."""
