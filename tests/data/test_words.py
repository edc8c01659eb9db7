import numpy as np
import pytest

from sarb.data.words import word_vectors
from sarb.errors import DataError


@pytest.fixture
def glove(tmp_path):
    def write(text):
        path = tmp_path / "glove.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


FILE = """the 9 9 9
cat 1 2 3
hot 2 0 0
dog 0 4 -1e-1
hot_dog 7 7 7
Polar 5 5 5
polar 1 1 1
bear 3 3 3
"""


def test_whole_names_word_means_and_missing(glove):
    names = ["cat", "hot dog", "Dog", "polar-bear", "hot_cat", "unicorn", "bear unicorn", "Polar", ""]
    vectors, found = word_vectors(glove(FILE), names)
    assert (vectors.shape, vectors.dtype, found.dtype) == ((9, 3), np.float32, np.bool_)
    expected = [
        [1, 2, 3],
        [7, 7, 7],
        [0, 4, -0.1],
        [2, 2, 2],
        [1.5, 1, 1.5],
        [0, 0, 0],
        [3, 3, 3],
        [5, 5, 5],
        [0, 0, 0],
    ]
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    assert found.tolist() == [True, True, True, True, True, False, True, True, False]


def test_voc_names_in_one_word(glove):
    text = "dining 2 0\ntable 0 2\npotted 1 1\nplant 3 3\ntv 4 4\nmonitor 0 0\n"
    vectors, found = word_vectors(glove(text), ["diningtable", "pottedplant", "tvmonitor"])
    assert (vectors.tolist(), found.all()) == ([[1, 1], [2, 2], [2, 2]], True)


def test_word2vec_header_crlf_and_trailing_space(glove):
    vectors, found = word_vectors(glove("2 3\r\ncat 1 2 3 \r\ndog 4 5 6\r\n"), ["dog", "cat", "2"])
    assert vectors.tolist() == [[4, 5, 6], [1, 2, 3], [0, 0, 0]]
    assert found.tolist() == [True, True, False]


def test_tokens_with_spaces_are_read_from_the_right(glove):
    lines = [
        "the 0.1 0.2",
        "cat name@domain.com 0.5 0.5",
        ". . . 0.3 0.3",
        "cat 10 0.7 0.7",
        "cat 0.25 0.75",
        "cat 8.0 8.0",
    ]
    vectors, _ = word_vectors(glove("".join(f"{line}\n" for line in lines)), ["cat"])
    assert vectors.tolist() == [[0.25, 0.75]]


def test_bytes_that_are_no_text_do_not_matter(glove):
    vectors, found = word_vectors(
        glove("é\u00a0b 1 1\n".encode() + b"\xff\xfe 2 2\n" + "café 3 4\n".encode()), ["Café"]
    )
    assert (vectors.tolist(), found.tolist()) == ([[3, 4]], [True])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat 1 2 3\ndog 1 2\n", "line 2: 2 numbers after the word, expected 3"),
        ("cat 1 2 3\n\nalone\n", "line 3: 0 numbers after the word, expected 3"),
        ("the 1 2\ndog 0.5 1.5 2.5\n", "line 2: 3 numbers after the word, expected 2"),
        ("the 1 2\ndog 1 x\n", "line 2: could not convert"),
        ("the 1 2\ndog 1 nan\n", "line 2: expected finite numbers"),
        ("word\n", "line 1: 0 numbers after the word, expected at least 1"),
        ("", "the file is empty"),
        (b"PK\x03\x04....", "a zip archive"),
    ],
)
def test_faults_name_the_line(glove, text, message):
    with pytest.raises(DataError, match=r"glove\.txt") as error:
        word_vectors(glove(text), ["dog"])
    assert message in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: word vectors cannot be read"):
        word_vectors(tmp_path / "none.txt", ["dog"])
