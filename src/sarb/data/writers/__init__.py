"""Labels back to files.

write         ``write`` and ``sarb data convert``: which format, nothing overwritten
formats       one writer per format
"""
