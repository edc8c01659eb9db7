"""Train with the manners of scikit-learn. Expect probabilities of two pictures, and a score between 0 and 1.

X are paths (or Pillow images, or arrays), y the labels: 1 present, 0 absent, NaN unknown.
"""

import numpy as np

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
known = data.train.hide(known=0.3, seed=0).labels
y = np.where(known.known, known.values == 1, np.nan)

classifier = sarb.SarbClassifier(
    encoding="binary", categories=data.categories, backbone="tiny", image_size=64, random_state=0
)  # leave backbone and sizes out for ImageNet weights
classifier.fit(data.train.paths, y)

for picture, row in zip(data.test.paths[:2], classifier.predict_proba(data.test.paths[:2]), strict=True):
    best = np.argsort(-row)[:3]
    print(picture.name, ", ".join(f"{classifier.classes_[place]} {row[place]:.2f}" for place in best))
print(f"mean average precision {classifier.score(data.test.paths, data.test.labels):.2f}")
print(classifier.get_params()["image_size"], "px")  # so that cross_val_score and GridSearchCV work
