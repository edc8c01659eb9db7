"""What is wrong with a source, and what is in it.

problems      findings with file, line and column; raised together or gathered
source        ``sarb data check``
names         names of images and categories: unusable, repeated, alike
images        image files: unreadable, or the same picture twice
entries       where an image is listed
official      documented sizes of the published data sets
stats         ``sarb data stats``
"""
