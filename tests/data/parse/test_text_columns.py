import numpy as np
import pytest

from sarb.data.parse.text_columns import text_columns


def columns_of(*rows, known=()):
    names = sorted({cell for row in rows for cell in row} | {""})
    codes = np.array([[names.index(cell) for cell in row] for row in rows], np.int32)
    bad = np.array([[cell not in ("", *known) for cell in row] for row in rows])
    lettered = np.array([[any(map(str.isalpha, cell)) for cell in row] for row in rows])
    return text_columns(codes, bad, lettered, names.index(""))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["ab-", "ba-", "abr", "bbr", "aar"], [2]),  # one remark, three times
        (["ab-", "ba-", "abr", "bbr"], []),  # twice: may be a typing error
        (["ab7", "ba7", "ab7"], []),  # a number may be a code
        (["ab7", "ba8", "ab9"], [2]),  # not if there are many
        (["abr", "bas", "abt", "ab-"], [2]),
        (["abr", "baa", "abr", "abr"], []),  # has a word of the others
        (["ar", "br", "ar"], []),  # two columns without a common word: which is the text?
        (["r", "s", "t"], []),  # the only column
    ],
)
def test_columns_of_text(rows, columns):
    assert columns_of(*[["" if cell == "-" else cell for cell in row] for row in rows]) == columns


def test_known_codes_tell_which_column_is_the_text():
    assert columns_of(*[["a", "r"], ["b", "r"], ["a", "r"]], known="ab") == [1]
