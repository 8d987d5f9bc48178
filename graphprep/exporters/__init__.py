"""Stores as the files of trainers: one target a file, and the file formats that they share."""
