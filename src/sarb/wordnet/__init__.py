"""The thousand concepts of ImageNet and the part of WordNet's noun tree above them.

table         ``wordnet()``: concepts, nodes and their words, read from ``table.json``

``scripts/build_concepts.py`` makes ``table.json``. WordNet is Princeton University's: ``LICENSE.txt``.
"""
