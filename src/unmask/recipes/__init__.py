"""One file for each member of the family, headed by its paper and by what it changed."""
