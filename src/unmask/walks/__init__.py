"""One text, stage by stage: what a member or a bare rule does to it, as data that a terminal or a page can show."""
