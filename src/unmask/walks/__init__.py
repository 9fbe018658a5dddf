"""Walks: what a member or a single task does to one text, stage by stage, as data for terminal and page."""
