"""Who watches the scheduler: recording, traces, explanations, the decision log, the time of the loop."""
