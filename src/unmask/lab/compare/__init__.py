"""Pre-train several members under one budget and compare them."""
