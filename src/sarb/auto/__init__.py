"""A ladder of fitted steps on frozen features, each kept only if known held-out entries gain.

features      square root, PCA
parts         known entries in parts; F + 1 models, each without one part
solver        many small ridge-penalised logistic regressions at once, by L-BFGS
probe         the linear probe on known entries, with offsets
evidence      concept Bayes and name evidence from the backbone's own classifier
names         which concepts of the backbone a category's name means
neighbours    labels of the nearest training images
judge         out-of-fold loss, gain and choice of weights
rung          what a step reaches, and its row in ``log.csv``
tenlines      the ten-line baseline, judged like a rung
ladder        ``fit_ladder``: all of it, rung by rung
frame         the ladder between the baseline and the finished model
told          the rungs as a table of text, and the last word on them
"""
