"""Losses: functions of logits or representations and targets that return a scalar.

partial_bce  binary cross entropy of the known entries
contrastive  similar representations for the same category
asymmetric   easy absent labels count little
focal_margin  focal losses with a margin, and the hill
positive_count  the expected number of present labels
similarity   learned thresholds, and prototypes that attract
largest      the largest of some entries
"""

from sarb.losses.contrastive import contrastive
from sarb.losses.partial_bce import partial_bce

__all__ = ["contrastive", "partial_bce"]
