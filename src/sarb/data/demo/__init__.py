"""The demo data set: drawn scenes with 30 categories, generated locally and the same on every machine.

dataset       ``load_demo``: number of images, splits, cache
scene         compose one image: background, objects, clutter, light
themes        backgrounds, and which objects occur in them
objects       outdoor objects
things        indoor objects, and the table of all categories
clutter       drawings without a label
pen           drawing primitives and colours
"""
