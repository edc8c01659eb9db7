"""See where the model of ``train.py`` looked, and which categories moved a score.

Expect a picture with one panel per category, and a line each with its probability and the strongest
influences.
"""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
model = sarb.load_model("runs/example")
photo = data.test.paths[0]
names = [name for name, _ in sarb.predict(model, [photo]).top(2)[0]]

found = sarb.explain(model, photo, names)
print(found)
x, y = found.peak(names[0])
print(f"for {names[0]} it looked most at {100 * x:.0f} % from the left, {100 * y:.0f} % from the top")
print(found.save("runs/example/explained.png"))

# what each place added to the score, instead of where the network looked
evidence = sarb.explain(model, photo, names, maps="evidence", influences=0)
print(evidence.kind, evidence.arrays.shape)
