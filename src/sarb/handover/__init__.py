"""Labels and scores in the forms of other packages; an unknown label is never handed over as absent.

cleanlab    one binary problem per category, over its known entries
datasets    Hugging Face datasets
fiftyone    FiftyOne samples
"""
