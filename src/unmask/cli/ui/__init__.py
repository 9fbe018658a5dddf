"""Progress bars, tables and console output."""
