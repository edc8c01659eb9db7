"""sarb: multi-label image recognition with partial labels."""

__version__ = "0.1.0"
