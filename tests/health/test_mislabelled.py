"""Labels that scores contradict strongly."""

import numpy as np

from sarb.health.mislabelled import doubtful_labels
from sarb.labels import LabelMatrix


def test_strong_conflicts_of_known_labels_only():
    names = [f"{row}.jpg" for row in range(40)]
    values = np.full((40, 1), -1, np.int8)
    values[:20] = 1
    values[0], values[1], values[2] = -1, 1, 0
    calibrated = np.where(np.arange(40) < 20, 0.95, 0.02)[:, None]
    calibrated[1], calibrated[2] = 0.001, 0.999
    labels = LabelMatrix(values, ("cat",), names)
    found = doubtful_labels(calibrated, labels, np.array([0.5]), "train")
    assert [(item.file_name, item.label, item.split) for item in found] == [
        ("1.jpg", "cat", "train"),
        ("0.jpg", "cat", "train"),
    ]
    assert found[0].score > found[1].score > 0.9
    assert found[0].detail == "given as present, probability of present 0.001"
