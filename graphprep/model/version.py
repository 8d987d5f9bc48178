"""The version, as stores name it that this wrote."""

__version__ = "0.1.0"
