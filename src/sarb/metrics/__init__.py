"""Numbers from scores and labels, in NumPy.

measures      mAP, OP, OR, OF1, CP, CR, CF1 and precision-recall curves
bootstrap     95 % intervals of mAP, and of the difference between two models on the same images
"""

from sarb.metrics.bootstrap import Interval, map_difference, map_interval
from sarb.metrics.measures import Curve, average_precision, evaluate, per_category, precision_recall

__all__ = [
    "Curve",
    "Interval",
    "average_precision",
    "evaluate",
    "map_difference",
    "map_interval",
    "per_category",
    "precision_recall",
]
