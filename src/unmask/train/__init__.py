"""One loop that knows no objective: steps, optimizers, schedules, checkpoints, records."""
