"""Logs as columns of numbers."""

import math

import numpy as np
import pytest

from sarb.errors import SarbError
from sarb.runs.log import read_log


def test_read_log_keeps_gaps_as_nan(tmp_path):
    (tmp_path / "log.csv").write_text("epoch,loss,note\n0,1.5,hello\n1,\n")
    log = read_log(tmp_path / "log.csv")
    assert log["epoch"].tolist() == [0, 1] and log["loss"][0] == 1.5
    assert math.isnan(log["loss"][1]) and np.isnan(log["note"]).all()
    (tmp_path / "empty.csv").write_text("")
    assert read_log(tmp_path / "empty.csv") == {}
    with pytest.raises(SarbError, match=r"gone\.csv"):
        read_log(tmp_path / "gone.csv")
