from sarb.label_studio.answers import answers_of, combined, row_of


def chosen(name, *choices):
    return {"from_name": name, "to_name": "image", "type": "choices", "value": {"choices": list(choices)}}


def test_untouched_questions_are_not_answered():
    results = [chosen("cat", "yes"), chosen("hot dog%2C plain", "No"), chosen("weather", "sun")]
    assert answers_of({"result": results}) == {"cat": 1, "hot dog, plain": -1}
    assert answers_of({"result": results, "was_cancelled": True}) == {}
    rectangle = {"from_name": "box", "type": "rectanglelabels", "value": {"rectanglelabels": ["yes"]}}
    assert answers_of({"result": [rectangle, "?", chosen("cat", "yes", "no")]}) == {}
    assert answers_of({}) == answers_of({"result": None}) == {}


def test_where_people_disagree_it_stays_unknown_unless_one_yes_is_enough():
    answers = [{"cat": 1, "dog": -1}, {"cat": -1, "bird": 1}]
    assert combined(answers) == ({"cat": 0, "dog": -1, "bird": 1}, {"cat"})
    assert combined(answers, "any") == ({"cat": 1, "dog": -1, "bird": 1}, {"cat"})
    assert combined([]) == ({}, set())


def test_a_task_finds_its_row_by_name_or_by_file():
    rows = {"a b.jpg": 0, "cats/1.jpg": 1}
    assert row_of({"file_name": "a b.jpg", "image": "/data/upload/1/other.jpg"}, rows) == 0
    assert row_of({"image": "/data/local-files/?d=cats/1.jpg"}, rows) == 1
    assert row_of({"photo": "/data/upload/1/a%20b.jpg"}, rows, "photo") == 0
    assert row_of({"image": "data:image/png;base64,AA"}, rows) is None
    assert row_of({"file_name": "x.jpg"}, rows) is None
