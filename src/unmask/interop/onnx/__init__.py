"""Encoders as ONNX files."""
