def examples(predict):
    return [{"a": "1"}]
