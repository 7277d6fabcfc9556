"""The fast paths, each as a change to a process that takes it away: decisions stay the same, their cost does not."""
