"""The documentation site: its links, its navigation, its reference, and its guides, which are executed."""

import csv
import html
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

import sarb
from tests.documentation.tools import ROOT, blocks, commands, hurry, run

DOCS = ROOT / "docs"
SOURCES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
#: made from CHANGELOG.md when the site is built
MADE = "changes.md"
REMOTE = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
)


def prose(page):
    """The page without code, in which brackets mean something else."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def links(page):
    return [place for place in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in place]


def anchors(page):
    """What a link may name: headings whose anchor is the same on GitHub and on the site."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = [title.replace("`", "").lower() for title in re.findall(r"^#+ (.+)$", text, flags=re.M)]
    on_github = [re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles]
    ascii_only = [title.encode("ascii", "ignore").decode() for title in titles]
    on_the_site = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in ascii_only]
    return {*on_github} & {*on_the_site}


def broken(page):
    """Links of a page that lead nowhere; pages of the site may not leave it, and folders are no pages."""
    found = []
    for place in links(page):
        path, _, anchor = unquote(place).partition("#")
        target = (page.parent / path).resolve() if path else page
        on_site = not page.is_relative_to(DOCS) or (target.is_relative_to(DOCS) and not target.is_dir())
        if not target.exists() or not on_site or (anchor and anchor not in anchors(target)):
            found.append(place)
    return found


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(page):
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path):
    other = tmp_path / "other.md"
    other.write_text("# Other\n\n## What it is?\n\n## See …\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#what-it-is) [c](#no) [d](gone.md) [e](other.md#see-) ![f](x.png)\n"
        "`[g](gone.md)` [h](https://example.org)\n```text\n[i](gone.md)\n```\n",
        encoding="utf-8",
    )
    assert broken(page) == ["#no", "gone.md", "other.md#see-", "x.png"]


def settings():
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_of(entry):
    if isinstance(entry, str):
        return [entry]
    return [
        page for inner in (entry.values() if isinstance(entry, dict) else entry) for page in pages_of(inner)
    ]


def test_navigation_has_every_page_once():
    listed = pages_of(settings()["nav"])
    assert sorted(listed) == sorted({*(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")), MADE})


def test_fonts_are_those_of_the_system():
    assert settings()["theme"]["font"] is False


def described():
    return [
        name
        for page in REFERENCE
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.M)
    ]


def test_the_reference_has_every_public_name():
    headings = [
        name
        for page in REFERENCE
        for name in re.findall(r"^### `(\w+)`$", page.read_text(encoding="utf-8"), re.M)
    ]
    assert sorted({*sarb.__all__} - {*headings} - {name.rpartition(".")[2] for name in described()}) == []


def test_the_reference_describes_what_there_is():
    assert len(described()) == len({*described()})
    for name in described():
        module, _, own = name.rpartition(".")
        assert (getattr(importlib.import_module(module), own).__doc__ or "").strip(), name


@pytest.mark.parametrize("picture", sorted((DOCS / "pictures").glob("*")), ids=lambda picture: picture.name)
def test_pictures_are_small_and_used(picture):
    assert picture.stat().st_size < 150_000
    assert [page for page in SOURCES if f"pictures/{picture.name}" in page.read_text(encoding="utf-8")]


@pytest.fixture
def site(tmp_path):
    if any(importlib.util.find_spec(name) is None for name in ("zensical", "mkdocstrings", "l2m4m")):
        pytest.skip("needs the extra [docs]: pip install 'sarb[docs]'")
    folder = tmp_path
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    (folder / "docs" / MADE).write_text(changes, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def lost_links(site, made):
    """Links and sources of the built pages that lead to no file, or to no anchor in it."""
    lost = []
    for page, text in made.items():
        for place in re.findall(r"<(?:a|img|script|link)\b[^>]*\b(?:href|src)=\"([^\"]+)\"", text):
            parts = urlsplit(html.unescape(place))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            found = target.is_file() and (not anchor.strip("_") or f'id="{anchor}"' in made.get(target, ""))
            lost += [] if found or target == site else [f"{page.relative_to(site)}: {place}"]
    return lost


@pytest.mark.slow
def test_the_site_is_whole_and_loads_nothing_from_elsewhere(site):
    # one test and not many: parallel runners would build it once for each
    made = {
        page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"
    }
    assert len(made) == len(pages_of(settings()["nav"]))
    assert lost_links(site, made) == []
    assert [REMOTE.findall(text) for text in made.values() if REMOTE.search(text)] == []
    for style in site.rglob("*.css"):
        assert (
            re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")) == []
        ), style
    for page in made:
        if page.parent.name == "methods":
            assert "<math" in made[page] and "$$" not in made[page], page
    reference = "".join(text for page, text in made.items() if page.parent.name == "reference")
    assert [name for name in described() if f'id="{name}"' not in reference] == []
    assert ":func:" not in reference


def make_photos(names):
    """The folder ``photos`` with its table, as the first guide makes it."""
    (making,) = [block for block in blocks(DOCS / "start.md") if block.language == "python"]
    exec(compile("\n" * making.line + making.text, "start.md", "exec"), names)


def play(page, monkeypatch, capsys, names):
    """Run every block of a page; return what the commands said."""
    said = ""
    for block in blocks(DOCS / f"{page}.md"):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, f"{page}.md", "exec"), names)
        for words, _ in commands(block) if block.language == "console" else ():
            capsys.readouterr()
            code, talk = run(words, monkeypatch), capsys.readouterr()
            said += talk.out + talk.err
            assert code == 0, (words, talk.err)
    return said


@pytest.mark.parametrize("page", ["index", "train", "compare", "predict", "faq"])
def test_every_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    make_photos({})
    shutil.copy(next(Path("photos").glob("*.jpg")), "photo.jpg")
    play(page, monkeypatch, capsys, {})
    last = {
        "index": "filled.csv",
        "train": "runs/python/test",
        "compare": "runs/compared/comparison.html",
        "predict": "scores.csv",
        "faq": "ask.csv",
    }
    assert Path(last[page]).exists()


def known(table):
    with Path(table).open(newline="", encoding="utf-8") as file:
        return [[code != "" for code in row[1:]] for row in csv.reader(file)][1:]


def test_start(tmp_path, monkeypatch, capsys):
    start = pytest.importorskip(
        "sarb.serve.start", reason="needs the extra [serve]: pip install 'sarb[serve]'"
    )
    from fastapi.testclient import TestClient

    asked = []

    def person(app, listening):
        with TestClient(app, base_url=f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            if client.get("/api/info").json()["review"]:
                reply = client.post("/api/review/next", json={"who": "me", "count": 8}).json()
                asked.append(len(reply["next"]))
                for number, question in enumerate(reply["next"]):
                    answer = {"who": "me", "question": question["id"], "answer": ("yes", "no")[number % 2]}
                    assert client.post("/api/review/answer", json=answer).status_code == 200
        return 0

    listen = start.listen
    monkeypatch.setattr(start, "listen", lambda host, _: listen(host, 0))
    monkeypatch.setattr(start, "_until_stopped", person)
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    said = play("start", monkeypatch, capsys, {})
    for promise in (
        "ready to train",
        "labels given and kept",
        "filled as present",
        "left unknown",
        "labels to ask",
    ):
        assert promise in said
    assert asked == [8, 8]  # about the first model, and again about the second
    assert sum(map(sum, known("photos/reviewed.csv"))) == sum(map(sum, known("photos/labels.csv"))) + 8
    assert Path("runs/second/model").is_dir() and Path("predictions.csv").is_file()
