"""Look at partial labels: read codes, hide some, count what is left."""

import sarb

labels = sarb.LabelMatrix.from_codes(
    [["1", "0", ""], ["", "1", "0"], ["1", "1", ""]],
    encoding="binary",
    categories=["cat", "dog", "car"],
    paths=["a.jpg", "b.jpg", "c.jpg"],
)
print(labels)  # 3 images × 3 categories, 66.7 % known
print(labels.values)  # +1 present, -1 absent, 0 unknown
print("known positives", dict(zip(labels.categories, labels.positives.tolist(), strict=True)))
print("P(dog present | cat present)", labels.cooccurrence()[0, 1])
print(labels.hide(known=0.5, seed=0))
print(labels.to_codes("signed"))
