"""``sarb data audit``: what is wrong with a data set. NumPy and Pillow only.

findings      ``Finding`` and ``Audit``: what was found, as CSV, text and JSON
looks         one look at every image file: fingerprint, measures, a small grey copy
quality       blurry, dark, bright, blank and tiny images
neighbours    the most similar images by the backbone's features, in blocks
alignment     whether one small picture is a part of another, perhaps mirrored
duplicates    exact and near duplicates, within and across splits
odd           images that resemble no other
mislabelled   given labels that out-of-fold scores contradict
categories    categories that are the same, contain one another or have nearly equal names
"""
