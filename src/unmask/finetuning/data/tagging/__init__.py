"""Token classification: files, tag schemes, windows, decoding."""
