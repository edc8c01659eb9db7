"""Labels back to files.

write         ``write`` and ``sarb data convert``: which format, nothing overwritten
arrangement   the splits put together again, and the options that draw them
formats       one writer per format
"""
