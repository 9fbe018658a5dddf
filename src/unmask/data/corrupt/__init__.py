"""Example in, Instance out: what is hidden, what is shown instead, and what is asked."""
