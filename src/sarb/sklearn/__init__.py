"""scikit-learn's interface.

estimator     ``SarbClassifier``
inputs        X and y as scikit-learn's users have them
"""
