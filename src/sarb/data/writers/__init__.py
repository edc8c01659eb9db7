"""Write labels to files.

write         ``write`` and ``sarb data convert``: choose the format, protect existing files
arrangement   merge the splits into one table, with the options that divide it again
formats       one writer per format
"""
