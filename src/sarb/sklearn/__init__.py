"""scikit-learn interface.

estimator     ``SarbClassifier``
inputs        convert X and y to a data set
"""
