"""What must be said: each objective names the kind of target it reads."""
