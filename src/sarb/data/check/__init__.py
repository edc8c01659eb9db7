"""What is wrong with a source, and what is in it.

problems      findings with file, line and column; raised together or gathered
source        ``sarb data check``
images        the same for the image files: damaged, tiny, repeated
official      documented sizes of the published data sets
stats         ``sarb data stats``
"""
