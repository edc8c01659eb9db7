import pytest

from sarb.data.readers.label_studio_names import category_name, control_name
from sarb.errors import DataError
from sarb.label_studio.config import labelling_config, read_config

NAMES = ["cat", "hot dog, plain", 'Kätzchen | <b> & "co" 100%', "$price", "image", "image_", "a'b[0]{x}\\"]


def test_every_category_is_a_yes_no_question_and_keeps_its_name():
    config = read_config(labelling_config(NAMES))
    assert [question.category for question in config.questions] == NAMES
    assert all(question.choices == {1: "yes", -1: "no"} for question in config.questions)
    assert config.image_key == "image"
    shown = {question.shown for question in config.questions}
    names = {question.control for question in config.questions}
    assert shown == {"image__"} and not shown & names


@pytest.mark.parametrize("name", NAMES)
def test_names_of_controls_have_no_character_with_a_meaning(name):
    assert category_name(control_name(name)) == name
    assert not set(control_name(name)) & set("|,<>&\"'$[]{}\\")


def test_an_answer_is_spelled_as_the_configuration_does():
    text = """<View><Image name="i" value="$photo"/>
      <Choices name="cat" toName="i"><Choice value="Yes!" alias="YES"/><Choice value="No"/></Choices>
      <Choices name="weather" toName="i"><Choice value="sun"/><Choice value="rain"/></Choices>
      <Choices name="three" toName="i"><Choice value="yes"/><Choice value="no"/><Choice value="maybe"/></Choices>
    </View>"""
    config = read_config(text)
    (question,) = config.questions
    assert config.image_key == "photo"
    assert question.answer(1, 0.25) == {
        "from_name": "cat",
        "to_name": "i",
        "type": "choices",
        "value": {"choices": ["YES"]},
        "score": 0.25,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<View>", "not valid XML"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><View/>", "document type"),
        ("<View/>", "no <Image>"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(DataError, match=said):
        read_config(text)
