import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sarb.auto.names import MOST, MOST_OF_LAST_WORD, tie
from sarb.errors import ConfigError
from sarb.wordnet.table import TABLE, wordnet

COCO = """
airplane, apple, backpack, banana, baseball bat, baseball glove, bear, bed, bench, bicycle, bird, boat,
book, bottle, bowl, broccoli, bus, cake, car, carrot, cat, cell phone, chair, clock, couch, cow, cup,
dining table, dog, donut, elephant, fire hydrant, fork, frisbee, giraffe, hair drier, handbag, horse, hot
dog, keyboard, kite, knife, laptop, microwave, motorcycle, mouse, orange, oven, parking meter, person,
pizza, potted plant, refrigerator, remote, sandwich, scissors, sheep, sink, skateboard, skis, snowboard,
spoon, sports ball, stop sign, suitcase, surfboard, teddy bear, tennis racket, tie, toaster, toilet,
toothbrush, traffic light, train, truck, tv, umbrella, vase, wine glass, zebra
"""
COCO = [name.strip() for name in COCO.replace("\n", " ").split(",")]


def one(name, **options):
    return tie([name], **options)[0]


def test_the_table_is_whole_and_small():
    table = wordnet()
    assert (len(table.ids), len(table.nodes)) == (1000, 1860)
    assert all(node.concepts for node in table.nodes.values())
    assert table.nodes[table.ids[340]].concepts == {340}
    assert table.nodes["n00001740"].concepts == set(range(1000))
    assert TABLE.stat().st_size < 400_000
    assert "Princeton University" in (TABLE.parent / "LICENSE.txt").read_text(encoding="utf-8")


def test_coco():
    ties = tie(COCO)
    assert (len(ties), ties.tied.sum()) == (80, 60)
    found = {tie.category: tie for tie in ties}
    assert found["zebra"].names == ("zebra",)
    assert found["elephant"].names == ("Indian elephant", "African elephant")
    assert found["cell phone"].names == ("cellular telephone",)
    assert found["traffic light"].names == ("traffic light",)
    assert (found["sports ball"].how, found["sports ball"].word) == ("last word", "ball")
    assert "soccer ball" in found["sports ball"].names
    assert len(found["dog"].concepts) == 118
    assert {name for name in COCO if not found[name].concepts} >= {
        "tv",
        "cake",
        "skateboard",
        "giraffe",
    }


def test_matrix():
    ties = tie(["zebra", "nothing at all", "dog"])
    assert (ties.matrix.shape, ties.matrix.dtype) == ((3, 1000), np.bool_)
    assert ties.matrix[0].nonzero()[0].tolist() == [340]
    assert ties.matrix.sum(axis=1).tolist() == [1, 0, 118]
    assert ties.tied.tolist() == [True, False, True]
    assert ties.ids[340] == "n02391049"


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("Zebra", "zebra"),
        (" ZEBRA ", "zebra"),
        ("zebras", "zebra"),
        ("buses", "bus"),
        ("park benches", "park bench"),
        ("strawberries", "strawberry"),
        ("traffic_light", "traffic light"),
        ("traffic-light", "traffic light"),
        ("trafficlight", "traffic light"),
        ("diningtable", "dining table"),
        ("cellphone", "cell phone"),
        ("sofa", "couch"),
        ("aeroplane", "airplane"),
        ("racquet", "racket"),
    ],
)
def test_spellings_plurals_and_synonyms(name, same):
    assert one(name).concepts == one(same).concepts != ()


def test_a_concept_with_another_categorys_name_stays_with_it():
    alone = one("dog")
    together = tie(["dog", "Siberian husky", "terrier"])
    husky = together[1].concepts
    assert together[1].names == ("Siberian husky",)
    assert set(husky) <= set(alone.concepts)
    assert set(together[0].concepts) == set(alone.concepts) - set(husky) - set(together[2].concepts)
    assert one("terrier").concepts == together[2].concepts


def test_a_concept_of_that_name_counts_in_any_sense():
    assert (one("mouse").how, one("mouse").concepts) == ("concept", (673,))
    assert one("mushrooms").names == ("mushroom",)
    assert len(one("crane").concepts) == 2
    assert one("bell").concepts == (), "the sixth sense of 'bell' is a chime, which has a better name"


def test_two_categories_with_the_same_meaning_share_their_concepts():
    ties = tie(["couch", "sofa", "dog", "dogs"])
    assert ties[0].concepts == ties[1].concepts == one("couch").concepts != ()
    assert ties[2].concepts == ties[3].concepts == one("dog").concepts != ()


def test_the_last_word_does_not_take_another_categorys_concepts():
    assert one("toy car").how == "last word"
    ties = tie(["toy car", "car"])
    assert (ties[0].how, ties[0].concepts) == ("taken by other categories", ())
    assert ties[1].concepts == one("car").concepts


def test_wide_names_are_not_tied():
    wide = one("animal")
    assert wide.concepts == ()
    assert wide.how.startswith("too wide") and int(wide.how.split()[2]) > MOST
    last = one("angry dog")
    assert last.concepts == ()
    assert int(last.how.split()[2]) == 118 > MOST_OF_LAST_WORD


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "-",
        "_",
        "s",
        "7",
        "42 17",
        "x" * 500,
        "собака",
        "猫",
        "İ",
        "🐶",
        "a\tb\n",
        "class_3",
        "n02391049",
    ],
)
def test_names_that_mean_nothing_here(name):
    found = one(name)
    assert (found.category, found.how, found.concepts) == (name, "no concept", ())


@given(st.lists(st.text() | st.sampled_from(sorted(wordnet().senses)), max_size=5))
def test_any_names(names):
    ties = tie(names)
    assert [tie.category for tie in ties] == names
    assert ties.matrix.sum(axis=1).max(initial=0) <= MOST
    assert (ties.matrix.any(axis=1) == ties.tied).all()


def test_no_category_at_all_and_the_same_twice():
    assert tie([]).matrix.shape == (0, 1000)
    assert tie([]).tied.shape == (0,)
    assert tie(["zebra", "zebra"]).matrix.sum() == 2


def test_the_order_of_categories_changes_nothing():
    forward = {tie.category: tie for tie in tie(COCO)}
    assert {tie.category: tie for tie in tie(COCO[::-1])} == forward


def test_by_hand():
    ties = tie(
        ["mouse", "tv", "person", "kite", "bird", "animal"],
        overrides={
            "mouse": ["computer mouse"],
            "tv": ["n04404412", "monitor"],
            "person": [],
            "kite": [],
            "animal": ["dog", "cats"],
        },
    )
    assert (ties[0].how, ties[0].names) == ("by hand", ("mouse",))
    assert set(ties[1].names) >= {"television", "monitor"}
    assert (ties[2].how, ties[2].concepts) == ("untied by hand", ())
    assert set(ties[4].concepts) == set(one("bird").concepts), (
        "a kite that is no bird leaves all birds to 'bird'"
    )
    assert set(ties[5].concepts) >= {*one("dog").concepts, *one("cat").concepts}


def test_by_hand_with_a_text():
    assert one("tv", overrides={"tv": "television"}).names == ("television",)
    assert one("tv", overrides={"tv": ""}).how == "untied by hand"


def test_overrides_that_do_not_exist_are_all_reported_with_the_nearest():
    with pytest.raises(ConfigError) as error:
        tie(["remote", "person"], overrides={"remote": ["remote contrl", "n00000000"], "persn": []})
    first, second, third = error.value.problems
    assert first == "tie of 'persn': no such category. Did you mean 'person'?"
    assert "'remote contrl'" in second and "Did you mean 'remote control'?" in second
    assert "'n00000000'" in third


def test_as_a_table():
    table = tie(["zebra", "7"]).to_dict()
    assert table == {
        "zebra": {"how": "name", "word": "zebra", "nodes": ["n02391049"], "concepts": {"n02391049": "zebra"}},
        "7": {"how": "no concept", "word": "", "nodes": [], "concepts": {}},
    }
