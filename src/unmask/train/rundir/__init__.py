"""The folder of a run: log, checkpoints, locks."""
