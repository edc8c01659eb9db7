"""Search the learning rate, judged on known labels of validation images. Expect two trials and a recipe.

Needs ``sarb[tune]``.
"""

import sarb

tuned = sarb.tune(
    "demo",
    data_options={"train": 64, "test": 32, "size": 64},
    method="partial_bce",
    network="pooled",
    backbone="tiny",
    image_size=64,
    known=0.5,
    epochs=2,
    search={"lr": "1e-3..1e-1:log"},
    trials=2,
    out="runs/example-tune",
)
print(f"best of {len(tuned.trials)} trials: {tuned.best.values}, recipe {tuned.recipe}")
