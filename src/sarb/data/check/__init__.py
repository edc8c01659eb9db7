"""Find problems in a data source, and count what is in it.

problems      findings with file, line and column, raised together or collected
source        ``sarb data check``
names         image and category names: unusable, duplicate, too similar
outside       image names that lead out of their folder
images        image files: unreadable, or the same picture twice
entries       where the source lists an image
official      documented sizes of published data sets
stats         ``sarb data stats``
"""
