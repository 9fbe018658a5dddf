"""What was measured or walked, as text for a terminal or as one page that opens with no network."""
