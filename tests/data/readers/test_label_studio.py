import json

import pytest

import sarb
from sarb.data.check.problems import gather
from sarb.data.readers.label_studio_names import local_name
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image
from tests.data.formats.label_studio import annotation, example, result, task

OPTIONS = {"unlisted": "absent", "test": 0}


def write(root, tasks, indent=None, name="export.json"):
    """An export with one task a line; every image there is on disk."""
    for file in ("a.jpg", "b.jpg", "c.jpg"):
        write_image(root / file, 0, (8, 8))
    lines = ",\n".join(json.dumps(item, indent=indent, ensure_ascii=False) for item in tasks)
    (root / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return root / name


def choice(*names):
    return annotation(1, result("things", list(names)))


def labels(data):
    return dict(zip(data.train.labels.paths, data.train.labels.values.tolist(), strict=True))


def test_what_is_noted(tmp_path):
    whole = example(tmp_path)
    data = sarb.load(whole.source, **whole.options)
    said = {
        "unlisted": "absent",
        "annotators": "all",
        "control": "things",
        "unanswered": 2,
        "predictions_ignored": 1,
    }
    assert {key: data.notes[key] for key in said} == said
    with gather() as found:
        sarb.load(whole.source, **whole.options)
    assert [finding.message for finding in found.of("note")] == [
        "1 prediction ignored: predictions come from a model"
    ]


def test_annotators_any_and_all(tmp_path):
    both = task(1, "a.jpg", choice("cat", "dog"), choice("cat", "ant"), annotation(3, cancelled=True))
    path = write(tmp_path, [both, task(2, "b.jpg", choice("dog"), choice("dog"))])
    with pytest.raises(DataError, match=r"annotators disagree on 1 task;") as error:
        sarb.load(path, **OPTIONS)
    assert "-o annotators=any: 4 present" in str(error.value)
    assert "-o annotators=all: 2 present, 2 unknown where they disagree" in str(error.value)
    assert labels(sarb.load(path, annotators="any", **OPTIONS)) == {"a.jpg": [1, 1, 1], "b.jpg": [-1, -1, 1]}
    assert labels(sarb.load(path, annotators="all", **OPTIONS)) == {"a.jpg": [0, 1, 0], "b.jpg": [-1, -1, 1]}


def test_people_who_agree_need_no_option(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat"), choice("cat")), task(2, "b.jpg", choice("dog"))])
    assert labels(sarb.load(path, **OPTIONS)) == {"a.jpg": [1, -1], "b.jpg": [-1, 1]}


def test_skipped_and_not_annotated_tasks_are_unknown(tmp_path):
    skipped = annotation(1, result("things", ["cat"]), cancelled=True)
    path = write(tmp_path, [task(1, "a.jpg", skipped), task(2, "b.jpg"), task(3, "c.jpg", choice("cat"))])
    assert labels(sarb.load(path, **OPTIONS)) == {"a.jpg": [0], "b.jpg": [0], "c.jpg": [1]}


def test_an_empty_answer_is_an_answer(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", annotation(1)), task(3, "c.jpg", choice("cat"))])
    assert labels(sarb.load(path, **OPTIONS)) == {"a.jpg": [-1], "c.jpg": [1]}


def test_the_leaf_of_a_nested_choice(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", choice(["animal", "cat"], ["plant"]))])
    assert sarb.load(path, **OPTIONS).categories == ("cat", "plant")


def test_controls_can_be_joined_unless_they_share_a_choice(tmp_path):
    two = annotation(1, result("wild", ["cat"]), result("my pet", ["dog"]))
    path = write(tmp_path, [task(1, "a.jpg", two)])
    with pytest.raises(DataError, match="contains answers to 2 Choices") as error:
        sarb.load(path, **OPTIONS)
    assert "-o control=wild: 1 choice" in str(error.value)
    assert "-o control='my pet': 1 choice" in str(error.value)
    assert sarb.load(path, control="my pet", **OPTIONS).categories == ("dog",)
    assert sarb.load(path, control="wild,my pet", **OPTIONS).categories == ("cat", "dog")
    with pytest.raises(
        DataError, match=r"export.json: unknown value of option control: 'wid'. Did you mean 'wild'\?"
    ):
        sarb.load(path, control="wid", **OPTIONS)
    path = write(tmp_path, [task(1, "a.jpg", annotation(1, result("wild", ["yes"]), result("pet", ["yes"])))])
    with pytest.raises(DataError, match=r"line 2: 'yes' is a choice in both 'wild' and 'pet'"):
        sarb.load(path, control="wild,pet", **OPTIONS)


def test_other_results_are_no_choices(tmp_path):
    rectangle = {"type": "rectanglelabels", "from_name": "r", "value": {"x": 1, "rectanglelabels": ["cat"]}}
    path = write(tmp_path, [task(1, "a.jpg", annotation(1, rectangle))])
    with pytest.raises(DataError, match=r"no task has a choice; the results are rectanglelabels \(1\)"):
        sarb.load(path, **OPTIONS)


def test_declared_categories(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat"))])
    assert sarb.load(path, categories="dog,cat", **OPTIONS).categories == ("dog", "cat")
    with pytest.raises(DataError, match=r"line 2: unknown category 'cat'. Did you mean 'cats'\?"):
        sarb.load(path, categories="dog,cats", **OPTIONS)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a/b c.jpg", "a/b c.jpg"),
        ("/mnt/a%20b.jpg", "/mnt/a%20b.jpg"),
        ("/data/upload/3/0a1b2c3d-a%20b.jpg", "0a1b2c3d-a b.jpg"),
        ("/data/upload/0a1b2c3d-a.jpg", "0a1b2c3d-a.jpg"),
        ("http://localhost:8080/data/upload/3/0a1b2c3d-a.jpg", "0a1b2c3d-a.jpg"),
        ("/data/local-files/?d=x/caf%C3%A9%231.jpg", "x/café#1.jpg"),
        ("http://localhost:8080/data/local-files/?d=x%5Cy.jpg", "x/y.jpg"),
        ("https://example.com/x/a%2Bb.jpg?width=3&d=/z#top", "a+b.jpg"),
        ("s3://bucket/x/a%20b?.jpg", "a%20b?.jpg"),
        ("gs://bucket/a.jpg", "a.jpg"),
    ],
)
def test_local_names(value, name):
    assert local_name(value) == name


def test_the_prefix_of_an_upload_goes_only_where_the_file_has_none(tmp_path):
    write_image(tmp_path / "images" / "0a1b2c3d-a.jpg", 0, (8, 8))
    write_image(tmp_path / "images" / "x.jpg", 0, (8, 8))
    uploads = ["/data/upload/1/0a1b2c3d-a.jpg", "/data/upload/1/1a1b2c3d-x.jpg"]
    path = write(tmp_path, [task(number, name, choice("cat")) for number, name in enumerate(uploads)])
    (tmp_path / "a.jpg").unlink()
    assert list(labels(sarb.load(path, **OPTIONS))) == ["0a1b2c3d-a.jpg", "x.jpg"]
    assert list(labels(sarb.load(path, check_files=False, **OPTIONS))) == ["0a1b2c3d-a.jpg", "1a1b2c3d-x.jpg"]


def test_two_images_with_one_file_name(tmp_path):
    urls = ["https://example.com/x/a.jpg", "https://example.com/y/a.jpg"]
    path = write(tmp_path, [task(number, url, choice("cat")) for number, url in enumerate(urls)])
    with pytest.raises(
        DataError, match=r"line 3: '.*/x/a.jpg' on line 2 and '.*/y/a.jpg' would be the same file 'a.jpg'"
    ):
        sarb.load(path, **OPTIONS)


def test_a_repeated_task_names_both_lines(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat")), task(2, "a.jpg", choice("dog"))])
    with pytest.raises(
        DataError, match=r"line 3.*'a.jpg' occurs twice, on lines 2 and 3; they disagree: 'cat'"
    ):
        sarb.load(path, **OPTIONS)


def test_the_key_of_the_image(tmp_path):
    item = task(1, "a.jpg", choice("cat"))
    item["data"] = {"text": "a cat", "photo": "b.jpg"}
    assert list(labels(sarb.load(write(tmp_path, [item]), **OPTIONS))) == ["b.jpg"]
    item["data"]["thumbnail"] = "c.jpg"
    path = write(tmp_path, [item])
    with pytest.raises(
        DataError, match=r"line 2: .*'photo', 'thumbnail'; choose the image with -o image_key=NAME"
    ):
        sarb.load(path, **OPTIONS)
    assert list(labels(sarb.load(path, image_key="thumbnail", **OPTIONS))) == ["c.jpg"]


def test_the_former_name_of_annotations(tmp_path):
    item = task(1, "a.jpg", choice("cat"))
    item["completions"] = item.pop("annotations")
    assert labels(sarb.load(f"label_studio:{write(tmp_path, [item])}", **OPTIONS)) == {"a.jpg": [1]}


def broken(change):
    item = task(1, "b.jpg", choice("cat"))
    change(item)
    return item


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda item: item.pop("data"), "a task has no 'data'"),
        (lambda item: item.update(data=3), "'data' of a task is 3; expected an object"),
        (lambda item: item["data"].update(image=None), "'image' of a task's data is None; expected text"),
        (
            lambda item: item["data"].update(image="data:image/png;base64,AAAA"),
            "the image is embedded",
        ),
        (lambda item: item.update(annotations={}), r"'annotations' of a task is {}; expected a list"),
        (lambda item: item.update(annotations=[1]), "an annotation is 1; expected an object"),
        (
            lambda item: item["annotations"][0].update(was_cancelled="no"),
            "'was_cancelled' of an annotation is 'no'",
        ),
        (lambda item: item["annotations"][0].pop("result"), "an annotation has no 'result'"),
        (lambda item: item["annotations"][0].update(result=["cat"]), "a result is 'cat'; expected an object"),
        (lambda item: item["annotations"][0]["result"][0].pop("from_name"), "has no 'from_name'"),
        (
            lambda item: item["annotations"][0]["result"][0].update(value="cat"),
            "'value' of .* is 'cat'; expected an",
        ),
        (lambda item: item["annotations"][0]["result"][0]["value"].update(choices="cat"), "expected a list"),
        (
            lambda item: item["annotations"][0]["result"][0]["value"].update(choices=[1]),
            "'choices' contains 1",
        ),
        (
            lambda item: item["annotations"][0]["result"][0]["value"].update(choices=[[]]),
            r"'choices' contains \[\]",
        ),
    ],
)
def test_wrong_types_name_the_line_of_the_task(tmp_path, change, message):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat")), broken(change), [1]])
    with pytest.raises(DataError, match=rf"(?s)2 problems.*line 3: .*{message}.*line 4: a task is \[1\]"):
        sarb.load(path, **OPTIONS)
    with gather() as found:
        data = sarb.load(path, **OPTIONS)
    assert [(finding.kind, finding.line) for finding in found.of("error")] == [
        ("bad-task", 3),
        ("bad-task", 4),
    ]
    assert labels(data) == {"a.jpg": [1]}


def test_lines_of_an_indented_export(tmp_path):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat")), 7], indent=2)
    text = path.read_text().splitlines()
    with pytest.raises(DataError, match=f"line {text.index('7') + 1}: a task is 7"):
        sarb.load(path, **OPTIONS)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "export.csv",
            "id,image,choice\n1,a.jpg,cat\n",
            "expected an exported .json file; export it again .* as JSON",
        ),
        (
            "export.json",
            '[{"id": 1, "image": "a.jpg", "choice": "cat"}]',
            "line 1: .*JSON-MIN, export it again",
        ),
        ("export.json", "[]", "contains no task"),
        ("export.json", '{"id": 1, "data": {}}', "contains no task"),
        (
            "export.json",
            '[{"data": {"image": "a.jpg"},\n "annotations": [',
            "line 2, column .*not valid JSON",
        ),
    ],
)
def test_other_exports_are_told_apart(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=f"{name}(: |, ).*{message}"):
        sarb.load(f"label_studio:{tmp_path / name}", **OPTIONS)


@pytest.mark.parametrize(("option", "word"), [("unlisted", "present"), ("annotators", "most")])
def test_a_wrong_word_for_an_option(tmp_path, option, word):
    path = write(tmp_path, [task(1, "a.jpg", choice("cat"))])
    with pytest.raises(ConfigError, match=f"value of option {option}:.*'{word}'"):
        sarb.load(path, **{**OPTIONS, option: word})


def yes_no(tmp_path, *tasks):
    return write(
        tmp_path,
        [
            task(
                number,
                f"{'abc'[number]}.jpg",
                *(annotation(person, *results) for person, results in enumerate(people)),
            )
            for number, people in enumerate(tasks)
        ],
    )


def test_yes_no_questions_keep_negatives_and_what_nobody_touched(tmp_path):
    path = yes_no(
        tmp_path,
        [[result("cat", ["yes"]), result("hot dog%2C plain", ["No"])]],
        [[result("cat", ["no"])]],
        [[]],
    )
    data = sarb.load(path, test=0)
    assert data.categories == ("cat", "hot dog, plain")
    assert labels(data) == {"a.jpg": [1, -1], "b.jpg": [-1, 0], "c.jpg": [0, 0]}
    names = tmp_path / "names.txt"
    names.write_text("bird\ncat\nhot dog, plain\n", encoding="utf-8")
    whole = sarb.load(path, test=0, categories=str(names))  # nobody touched the bird
    assert labels(whole) == {"a.jpg": [0, 1, -1], "b.jpg": [0, -1, 0], "c.jpg": [0, 0, 0]}


def test_people_who_disagree_about_yes_and_no(tmp_path):
    path = yes_no(tmp_path, [[result("cat", ["yes"])], [result("cat", ["no"]), result("dog", ["no"])]])
    with pytest.raises(DataError, match="annotators disagree on 1 label"):
        sarb.load(path, test=0)
    assert labels(sarb.load(path, test=0, annotators="any")) == {"a.jpg": [1, -1]}
    assert labels(sarb.load(path, test=0, annotators="all")) == {"a.jpg": [0, -1]}


def test_yes_and_no_beside_other_choices_need_a_control(tmp_path):
    path = yes_no(tmp_path, [[result("cat", ["yes"]), result("weather", ["sun"])]])
    with pytest.raises(DataError, match="contains answers to 2 Choices"):
        sarb.load(path, test=0)
    assert labels(sarb.load(path, test=0, control="cat")) == {"a.jpg": [1]}


def test_unlisted_with_yes_no_questions_says_what_to_leave_out(tmp_path):
    path = yes_no(tmp_path, [[result("wild", ["yes"]), result("pet", ["yes"])]])
    with pytest.raises(DataError, match="or leave out option unlisted"):
        sarb.load(path, control="wild,pet", **OPTIONS)
