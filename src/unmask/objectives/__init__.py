"""Objectives: what a network is trained to predict, and from which kind of target."""
