"""Make the probabilities of ``train.py`` trustworthy, with labels it has not seen; writes thresholds.json
into the run.

Expect two figures, before and after, smaller is better. At this toy size they are mostly noise.
"""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
_, held = data.test.split(0.5, seed=0)  # keep these apart from the images you report results on
model = sarb.load_model("runs/example")

calibration = sarb.calibrate(sarb.predict(model, held), held.labels)
print(calibration)
for name in ("brier_score", "calibration_error"):
    print(name, ", ".join(f"{kind} {value:.3f}" for kind, value in calibration.figures[name].items()))
for category, threshold in list(zip(calibration.categories, calibration.thresholds, strict=True))[:3]:
    print(f"{category}: present from {threshold:.2f} on")

# complete.py, suggest.py and serve.py find it there; "sarb calibrate RUN" needs no images of its own
calibration.save("runs/example/thresholds.json")
