"""The torch modules of objectives. A declaration and its module have the same file name."""
