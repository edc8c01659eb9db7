"""The drawn data set: 30 categories, made on the spot, the same everywhere.

dataset       ``load_demo``: how many pictures, which splits, where they are kept
scene         one picture: a place, a time of day, things in it
themes        what appears together
objects       things outdoors
things        things indoors, and the table of all categories
clutter       what is in the picture but has no label
pen           lines and shapes
"""
