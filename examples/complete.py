"""Fill the gaps of the labels of ``train.py`` where the model is sure; no given label is changed.

Expect gaps filled as absent only, about nine in ten of them right: a toy model is never sure that something
is there.
"""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
train = data.train.hide(known=0.3, seed=0)
scores = sarb.predict(sarb.load_model("runs/example"), train)

filled = sarb.complete(scores, train.labels, sarb.load_calibration("runs/example"), min_confidence=0.9)
print(filled)
known = train.labels.known
print("given labels changed:", int((filled.labels.values != train.labels.values)[known].sum()))

# the demo set knows what was hidden, your own data do not
new = filled.labels.known & ~known
right, expected = (
    (filled.labels.values == data.train.labels.values)[new].mean(),
    filled.confidence[new].mean(),
)
print(f"{new.sum()} labels filled, {100 * right:.1f} % of them right, {100 * expected:.1f} % expected")

filled.to_csv("runs/example/filled.csv")
for doubtful in filled.conflicts[:3]:  # given labels that look wrong
    print(f"look again: {doubtful.label} in {doubtful.file_name}, the model says {doubtful.calibrated:.2f}")
