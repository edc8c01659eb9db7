from pathlib import Path

import numpy as np

from sarb.handover.fiftyone import sample_dictionaries


def test_each_field_lists_its_categories_with_their_confidence():
    fields = {"present": np.array([[True, False], [False, False]]), "absent": np.array([[False, True]] * 2)}
    confidence = np.array([[0.9, 0.8], [0.7, 0.6]])
    first, second = sample_dictionaries(["a.jpg", "b.jpg"], ["cat", "dog"], fields, confidence, "/photos")
    assert first["filepath"] == str(Path("/photos/a.jpg"))
    assert first["present"]["classifications"] == [
        {"_cls": "Classification", "label": "cat", "confidence": 0.9}
    ]
    assert first["absent"]["classifications"][0]["confidence"] == 0.8
    assert second["present"]["classifications"] == []


def test_given_labels_have_no_confidence():
    (sample,) = sample_dictionaries(["a.jpg"], ["cat"], {"present": np.array([[True]])})
    assert sample["present"] == {
        "_cls": "Classifications",
        "classifications": [{"_cls": "Classification", "label": "cat"}],
    }
    assert Path(sample["filepath"]).is_absolute()
