"""Whether two folders of parts hold the same.

Their bytes are the same in nearly every run. Once, beside a busy machine, another process rounded a probability another
way, so what counts here is the content: every name, every label, and every number to 1e-6.
"""

import json

import pandas


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def assert_same(first, second):
    one, two = content(first), content(second)
    assert one.keys() == two.keys()
    for name in one:
        if one[name] == two[name]:
            continue
        if name.endswith(".parquet"):
            tables = [pandas.read_parquet(folder / name) for folder in (first, second)]
            pandas.testing.assert_frame_equal(*tables, check_exact=False, rtol=0, atol=1e-6)
        else:
            assert name == "_manifest.json", f"{name} differs"
            assert without_digests(one[name]) == without_digests(two[name])


def without_digests(text):
    def clean(value):
        if isinstance(value, dict):
            return {key: clean(each) for key, each in value.items() if key not in ("sha256", "bytes")}
        return [clean(each) for each in value] if isinstance(value, list) else value

    return clean(json.loads(text))
