"""Everything after scores: from logits to labels somebody can rely on.

calibration   ``Calibration``: logits to probabilities and thresholds
platt         its fit: slope and offset per category, shrunk to a shared one
thresholds    the threshold for the best F1, or for a precision
decisions     thresholds that are no worse than 0.5, and what they are worth
reliability   calibration error, Brier score, reliability tables
folds         out-of-fold scores of the known labels
scale         their scale
completion    ``complete``: fill unknown labels
backing       how far its expected precision can be trusted
formats       the files it writes
conflicts     known labels that look wrong
suggestion    ``suggest``: which labels to ask for next
outlook       what to expect of the answers
"""
