import pytest

from sarb.data.parse.element import Element, checked_identity, identity_order


def test_fields_of_an_element():
    element = Element(
        "images", {"id": 7, "name": "x", "ids": [1, "b"], "zero": "\0", "half": 1.0, "yes": True}, 3, 9
    )
    assert element.location == "images[3]"
    assert (element.identity("id"), element.text("name"), element.identities("ids")) == (7, "x", [1, "b"])
    for read, name, message in (
        (element.identity, "half", "half is 1.0; expected an integer or a string"),
        (element.identity, "yes", "yes is True; expected"),
        (element.identity, "none", "has no 'none'"),
        (element.identity, "ids", r"ids is \[1, 'b'\]; expected"),
        (element.identities, "id", "id is 7; expected a list of ids"),
        (element.text, "id", "id is 7; expected a string"),
        (element.text, "zero", "expected a string"),
        (element._replace(value=[1]).text, "id", r"is not an object: \[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            read(name)
    for value in (None, "", float("nan"), [1], {}):
        with pytest.raises(ValueError, match="expected an integer or a string"):
            checked_identity("id", value)
    assert sorted(["10", 9, "9", 10, -1], key=identity_order) == [-1, 9, 10, "10", "9"]
