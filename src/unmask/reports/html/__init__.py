"""HTML elements and the frame of a page."""
