"""Bytes and words at addresses."""
