"""Epochs in words: no column name of log.csv, every abbreviation explained."""

from sarb.training.epochs import EpochTable, summary

ROW = {
    "epoch": 0,
    "loss": 0.51234,
    "loss_cls": 0.4,
    "valid_mAP": 40.25,
    "alpha": 0.5,
    "completed_ilrb": 1200,
    "completed_own": 3,
    "seconds": 2.0,
}


def test_the_table_has_a_heading_once_and_explains_it():
    table = EpochTable(4)
    *notes, head, first = table.lines([ROW])
    assert head.split() == [
        "epoch",
        "loss",
        "valid",
        "mAP",
        "α",
        "by",
        "ILRB",
        "by",
        "own",
        "seconds",
        "left",
    ]
    assert first.split() == ["0", "0.5123", "40.25", "0.5", "1,200", "3", "2.0", "about", "6", "s"]
    text = "\n".join(notes)
    assert "by ILRB: unknown labels filled in this epoch" in text and "ILRB: instance-level blending" in text
    assert "completed_" not in "\n".join([*notes, head, first])
    (second,) = table.lines([ROW, {**ROW, "epoch": 1, "seconds": 4.0}])
    assert second.split()[0] == "1" and second.endswith("about 6 s")
    assert len(second) == len(first)


def test_a_value_that_a_later_epoch_lacks_is_left_blank():
    table = EpochTable(2)
    table.lines([ROW])
    (line,) = table.lines([ROW, {"epoch": 1, "loss": 0.5, "seconds": 1.0}])
    assert line.split() == ["1", "0.5", "1.0", "about", "0", "s"]


def test_the_summary_is_about_the_epoch_before():
    assert summary(0, []) == "epoch 0"
    assert summary(1, [ROW]) == "epoch 1, loss 0.5123, valid mAP 40.25"
