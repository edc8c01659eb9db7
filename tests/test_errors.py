"""Errors a user can cause."""

import pytest

from sarb.errors import (
    ConfigError,
    DataError,
    ImageError,
    SarbError,
    StageError,
    check_share,
    check_type,
    command_line,
    data_option,
    did_you_mean,
    named,
    part_option,
    setting,
    unknown_name,
)


@pytest.mark.parametrize("kind", [DataError, ImageError, ConfigError, StageError])
def test_all_are_sarb_errors(kind):
    assert issubclass(kind, SarbError) and not issubclass(SarbError, ValueError)


def test_config_error_holds_all_problems():
    error = ConfigError(["first", "second"])
    assert error.problems == ["first", "second"] and str(error) == "first\nsecond"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sabr", " Did you mean 'sarb'?"),
        ("SARB", " Did you mean 'sarb'?"),
        ("partial-bce", " Did you mean 'partial_bce'?"),
        ("zzzzzz", ""),
        ("", ""),
    ],
)
def test_did_you_mean(name, hint):
    assert did_you_mean(name, ["sarb", "partial_bce"]) == hint


def test_did_you_mean_answers_with_the_true_spelling_and_takes_any_iterable():
    assert did_you_mean("ours w/ sam", iter(["Ours w/ SAM", "SSGRL"])) == " Did you mean 'Ours w/ SAM'?"
    assert did_you_mean("x", []) == ""


def test_unknown_name_lists_the_choices_in_order():
    message = unknown_name("method", "sabr", {"sarb": 1, "partial_bce": 2})
    assert message == "unknown method 'sabr'. Did you mean 'sarb'? Available: partial_bce, sarb"
    assert unknown_name("method", "zzzzzz", ["b", "a"]) == "unknown method 'zzzzzz'. Available: a, b"


def test_check_share():
    for share in (0, 0.5, 1):
        check_share("known", share)
    for value, message in (
        (10, "known must be between 0 and 1, got 10; did you mean 0.1?"),
        (-1, "got -1"),
        (200, "got 200"),
    ):
        with pytest.raises(ConfigError) as error:
            check_share("known", value)
        assert str(error.value).endswith(message)
    with pytest.raises(ConfigError):
        check_share("known", float("nan"))


def test_options_are_named_as_the_reader_sets_them():
    def told():
        return [
            setting("overwrite"),
            setting("cache", False),
            setting("out", "my dir"),
            named("cache_views"),
            data_option("unlisted", "absent"),
            data_option("categories", 200),
            data_option("control", "my pet"),
            part_option("backbone", "weights", None),
        ]

    in_python = [
        "overwrite=True",
        "cache=False",
        "out='my dir'",
        "cache_views",
        'unlisted="absent"',
        "categories=200",
        'control="my pet"',
        "backbone_options={'weights': None}",
    ]
    assert told() == in_python
    with command_line():
        assert told() == [
            "--overwrite",
            "--no-cache",
            "--out 'my dir'",
            "--cache-views",
            "-o unlisted=absent",
            "-o categories=200",
            "-o control='my pet'",
            "--set backbone.weights=none",
        ]
    assert told() == in_python


def test_a_wrong_type_is_told_with_what_was_expected():
    check_type("labels", "a", (int, str), "a number or a text")
    with pytest.raises(TypeError, match="labels: expected a number, got str"):
        check_type("labels", "a", int, "a number")
