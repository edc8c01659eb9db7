import sys
from types import SimpleNamespace

import pytest

import sarb.workflows.label_studio_pull
import sarb.workflows.label_studio_push
from sarb.data.writers.rewrite import Reading
from sarb.workflows.label_studio_pull import Pulled
from sarb.workflows.label_studio_push import Pushed
from tests.documentation.tools import run


@pytest.fixture
def given(monkeypatch):
    """What the command line hands to the two sessions."""
    seen = {}

    def push(source, host, **options):
        seen.update(source=source, host=host, **options)
        return Pushed(7, "http://studio.test/projects/7", tasks=2, skipped=[("a.jpg", "a.jpg: not an image")])

    def pull(source, host, project, out, **options):
        seen.update(source=source, host=host, project=project, **options)
        return Pulled(
            out, test=1, conflicts=[{"file_name": "a.jpg"}], reading=Reading(str(out), {"encoding": "binary"})
        )

    monkeypatch.setattr(sarb.workflows.label_studio_push, "push_session", push)
    monkeypatch.setattr(sarb.workflows.label_studio_pull, "pull_session", pull)
    monkeypatch.setenv("LABEL_STUDIO_URL", "http://studio.test")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "secret")
    return seen


def test_push_says_how_to_fetch_the_answers_and_prints_the_project(given, monkeypatch, capsys):
    words = "sarb data push label-studio labels.csv -o encoding=binary --model runs/mine --limit 5 --prefill"
    assert run(words.split(), monkeypatch) == 3  # one image was skipped
    said = capsys.readouterr()
    assert said.out == "7\n" and "--project 7 --out answered.csv" in said.err and "skipped: a.jpg" in said.err
    assert (given["host"].url, given["host"].token) == ("http://studio.test", "secret")
    assert (given["options"], given["limit"], given["prefill"]) == ({"encoding": "binary"}, 5, True)
    assert "secret" not in said.out + said.err


def test_pull_says_what_to_do_next(given, monkeypatch, capsys):
    words = "sarb data pull label-studio labels.csv --project 7 --out answered.csv --replace"
    assert run(words.split(), monkeypatch) == 0
    said = capsys.readouterr().err
    assert "sarb train --data answered.csv -o encoding=binary" in said
    assert (
        "were replaced; see answered.csv.conflicts.csv" in said
        and "1 answered images are test images" in said
    )
    assert given["replace_known"] and given["project"] == 7


def test_the_token_is_not_in_the_help(given, monkeypatch, capsys):
    for verb in ("push", "pull"):
        run(["sarb", "data", verb, "label-studio", "--help"], monkeypatch)
        assert "secret" not in capsys.readouterr().out


def test_options_that_need_label_studio(monkeypatch, capsys):
    assert run(["sarb", "serve", "runs/none", "--retrain-after", "5"], monkeypatch) == 2
    assert "only for --label-studio" in capsys.readouterr().err


def test_serve_hands_the_token_of_the_environment_over(given, monkeypatch):
    seen = {}
    fake = SimpleNamespace(serve=lambda run, **options: seen.update(options) or 0)
    monkeypatch.setitem(sys.modules, "sarb.serve.start", fake)
    words = "sarb serve runs/mine --label-studio --local-root /data --retrain-after 0 --out answered.csv"
    assert run(words.split(), monkeypatch) == 0
    made = seen["label_studio"]
    assert (made.url, made.token, made.retrain_after) == ("http://studio.test", "secret", 0)
    assert [str(root) for root in made.roots] == ["/data"]
