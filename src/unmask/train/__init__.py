"""One loop that knows no objective: steps, optimisers, schedules, checkpoints, records."""
