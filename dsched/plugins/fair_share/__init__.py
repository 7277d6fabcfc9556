"""FairShare: queues between teams. See docs/queues.md; what it knows of them is in `dsched.scheduler.quota`."""
