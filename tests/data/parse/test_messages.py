from sarb.data.parse.messages import counted, few, first_here


def test_numbers_have_the_right_noun():
    assert [counted(count, "task") for count in (0, 1, 2000)] == ["0 tasks", "1 task", "2,000 tasks"]


def test_few_of_many():
    assert few(["a", "b"]) == "a, b"
    assert few(["a", "b", "c"], most=2) == "a, b, …"
    assert few({"abc": 1}, longest=2) == "ab"
    assert (first_here(1), first_here(3)) == ("", " (3 times, first here)")
