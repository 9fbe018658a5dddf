"""What a rule does to a corpus, measured and held against the rule."""
