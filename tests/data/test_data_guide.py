"""Run every command and Python block of the guide to data sources; compare its tables with the code."""

import ast
import importlib
import inspect
import json
import re
import shlex
import sys
from collections import defaultdict

import pytest

import sarb
from sarb.data.assemble import finish
from sarb.registry import find
from tests.data.fixtures import write_coco, write_image
from tests.data.formats import FORMATS
from tests.documentation.test_docs import keywords, stated, table
from tests.documentation.tools import ROOT, blocks, coarse_pictures, commands, hurry, run

GUIDE = ROOT / "docs" / "data.md"
PAGE = GUIDE.read_text(encoding="utf-8")
#: folder in the guide -> the example that is written there
PLACES = {
    "photos": "wide_csv",
    "parquet": "wide_parquet",
    "jsonl": "wide_jsonl",
    "lists": "list_csv",
    "birds": "metadata_csv",
    "flowers": "metadata_jsonl",
    "numpy": "npy",
    "coco": "coco",
    "lvis": "lvis",
    "voc": "voc",
    "vg": "visual_genome",
    "open_images": "open_images",
    "xray": "chexpert",
    "nus_wide": "nus_wide",
    "label_studio": "label_studio",
    "cvat": "cvat",
}
#: a file the guide shows: its name and perhaps its character set, above the block
SHOWN = re.compile(
    r"^`(?P<name>[\w./-]+)`(?P<latin>, saved as Latin-1)?:\n\n```\w+\n(?P<text>.*?)^```$", re.M | re.S
)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    """Return a folder with every example under its name in the guide, and the sources as in the guide."""
    here = tmp_path_factory.mktemp("guide")
    sources = {}
    for folder, name in PLACES.items():
        (here / folder).mkdir()
        example = importlib.import_module(f"tests.data.formats.{name}").example(here / folder)
        sources[name] = example.source.replace(f"{here}/", "")
    write_coco(here / "coco2017", year=2017)
    for found in SHOWN.finditer(PAGE):
        write_shown(here, found)
    # no two alike: the same picture in two splits is an error
    pictures = sorted(file for file in here.rglob("*") if file.suffix in (".jpg", ".png"))
    for number, file in enumerate(pictures):
        write_image(file, number, (8, 8))
    return here, sources


def write_shown(here, found):
    """Write a file the guide shows, and the images it names into the folder its commands say."""
    file = here / found["name"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(found["text"], encoding="latin-1" if found["latin"] else "utf-8")
    root = re.search(rf"{re.escape(found['name'])}[^`\n]* -o root=(\S+?)[`\s]", PAGE)
    for name in re.findall(r"[\w/-]+\.jpg", found["text"]):
        write_image((here / root[1] if root else file.parent) / name)


def decisions():
    """Return the commands in the decision table, and their exit codes."""
    rows = [row[1] for row in table(GUIDE, "I have")]
    return [
        (shlex.split(one), 2 * ("exit code 2" in row))
        for row in rows
        for one in re.findall(r"`(sarb [^`]+)`", row)
    ]


def test_all_of_it(laid_out, monkeypatch, capsys):
    # one test and not many: later blocks read what earlier ones wrote
    monkeypatch.chdir(laid_out[0])
    hurry(monkeypatch)
    coarse_pictures(monkeypatch)
    monkeypatch.syspath_prepend(laid_out[0])
    monkeypatch.setitem(sarb.DATASETS, "tags", "")  # the guide registers a reader of its own
    names = {}
    for words, code in decisions():
        assert execute(words, [], monkeypatch, capsys) == code, words
    for block in blocks(GUIDE):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, GUIDE, "exec"), names)
        elif block.language == "console":
            execute_block(block, monkeypatch, capsys)
    sys.modules.pop("tags", None)


def execute_block(block, monkeypatch, capsys):
    """Run the commands of a block; where no ``echo $?`` follows, the exit code must be 0."""
    steps = list(commands(block))
    for number, (words, expected) in enumerate(steps):
        if words != ["echo", "$?"]:
            following = steps[number + 1] if number + 1 < len(steps) else ([], [])
            code = int(following[1][0]) if following[0] == ["echo", "$?"] else 0
            assert execute(words, expected, monkeypatch, capsys) == code, f"line {block.line}: {words}"


def execute(words, expected, monkeypatch, capsys):
    """Run a command, compare its output in order (``…`` matches any lines), and return the exit code."""
    capsys.readouterr()
    code = run(words, monkeypatch)
    said = capsys.readouterr()
    lines = iter([line.rstrip() for line in (said.out + said.err).splitlines()])
    for line in expected:
        assert line == "…" or line.rstrip() in lines, f"{words} did not say {line!r}:\n{said.out}{said.err}"
    return code


def test_every_format_is_checked_and_loaded_in_the_guide(laid_out):
    shown = {
        kind: "\n".join(b.text for b in blocks(GUIDE) if b.language == kind) for kind in ("console", "python")
    }
    assert sorted(PLACES.values()) == sorted(FORMATS)
    for name, source in laid_out[1].items():
        place = re.escape(source.partition(":")[2] or source)
        assert re.search(rf"^\$ sarb data check (\w+:)?{place}( |$)", shown["console"], re.M), (
            f"{name}: {source}"
        )
        assert re.search(rf'sarb\.load\(\s*"(\w+:)?{place}"', shown["python"]), f"{name}: {source}"


def test_blocks_are_of_a_kind_that_is_checked():
    shown = {found["text"] for found in SHOWN.finditer(PAGE)}
    for block in blocks(GUIDE):
        assert block.language in ("console", "python", "text") or block.text in shown, block.line
        assert block.mark is None, block.line


@pytest.mark.parametrize("name", [*sarb.DATASETS])
def test_options_and_defaults_of_every_reader(name):
    reader = find("data source", sarb.DATASETS, name)
    plain = {entry.name: entry.default for entry in inspect.signature(reader).parameters.values()}
    expected = {
        option: default for option, default in plain.items() if default is not inspect.Parameter.empty
    }
    assert stated(table(GUIDE, f"option of `{name}`")) == expected


def test_options_of_every_source():
    assert stated(table(GUIDE, "option of every source")) == keywords(finish)


def test_every_kind_of_finding_is_explained():
    assert {row[0].strip("`"): set(row[1].split(" or ")) for row in table(GUIDE, "kind")} == kinds_in_code()


def kinds_in_code():
    """Return kind -> levels of every finding that the code in ``sarb/data`` can make."""
    kinds = defaultdict(set)
    for file in (ROOT / "src/sarb/data").rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                for kind, level in found_by(call, function) if isinstance(call, ast.Call) else ():
                    kinds[kind].add(level)
    return dict(kinds)


def found_by(call, function):
    """Yield (kind, level) of the findings a call can make."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "Finding" and len(call.args) > 1:
        yield from ((kind, level) for kind in texts(call.args[1]) for level in texts(call.args[0]))
    if name not in ("add", "fault") or (name == "add" and not {"kind", "level", "line"} & given.keys()):
        return
    kind = given.get("kind", ast.Constant("data"))
    level = given.get("level", ast.Constant("error"))
    for kinds, levels in assigned(function, kind, level) or [(kind, level)]:
        yield from ((one, other) for one in texts(kinds) for other in texts(levels))


def assigned(function, kind, level):
    """Return [kind, level] of each block of statements that assigns a value to one of these names."""
    pairs = []
    for block in statement_blocks(function):
        values = {
            target.id: statement.value
            for statement in block
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        chosen = [values.get(getattr(node, "id", ""), node) for node in (kind, level)]
        if chosen != [kind, level]:
            pairs.append(chosen)
    return pairs


def statement_blocks(function):
    """Yield every list of statements in a function: its body, and those of its loops and branches."""
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def texts(node):
    """Return the texts an expression can be; a part that varies is a word for presence or absence."""
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    if isinstance(node, ast.JoinedStr):
        (fixed,) = [part.value for part in node.values if isinstance(part, ast.Constant)]
        return {f"{fixed}present", f"{fixed}absent"}
    return {node.value} if isinstance(node, ast.Constant) else set()


def test_encodings():
    from sarb.labels import ENCODINGS, MEANINGS

    rows = {row[0].strip("`"): dict(zip(MEANINGS, row[1:], strict=True)) for row in table(GUIDE, "encoding")}
    spelled = {
        name: {code: MEANINGS[word] for word, cell in row.items() for code in re.findall(r"-?\w+|\?", cell)}
        for name, row in rows.items()
    }
    assert spelled == {
        name: {code or "blank": label for code, label in codes.items()} for name, codes in ENCODINGS.items()
    }


def test_fields_of_the_json(laid_out, monkeypatch, capsys):
    monkeypatch.chdir(laid_out[0])
    run(["sarb", "data", "check", "codes/labels.csv", "--json"], monkeypatch)
    content = json.loads(capsys.readouterr().out)
    assert [row[0].strip("`") for row in table(GUIDE, "field")] == list(content)
    assert re.findall(r"`(\w+)`", dict(table(GUIDE, "field"))["`findings`"]) == list(content["findings"][0])


def test_formats_that_are_written():
    from sarb.data.writers.write import WRITERS

    assert [row[0].strip("`") for row in table(GUIDE, "`--to`")] == list(WRITERS)


def test_documented_numbers_of_published_sets():
    from sarb.data.check import official
    from sarb.data.readers import chexpert, nus_wide

    tables = official.COCO, official.LVIS, official.VOC_2007, official.VISUAL_GENOME
    known = [item for numbers in tables for item in numbers.values()]
    images = {item.images for item in known} | {*chexpert.SIZES.values(), *nus_wide.SIZES.values()}
    more = {number for item in known for number in (item.annotations, item.categories)} | {nus_wide.CONCEPTS}
    cells = " ".join(cell for row in table(GUIDE, "file") for cell in row[1:])
    numbers = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", cells)}
    assert images <= numbers <= images | more
