"""Compare two models on the same test images: mAP with its interval, and whether a difference can be seen.

The first run is that of ``train.py``; the second one is trained here, without blending.
"""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
sarb.fit(
    data.train.hide(known=0.3, seed=0),
    method="partial_bce",
    network="ssgrl",
    backbone="tiny",
    image_size=64,
    epochs=3,
    out="runs/example-plain",
    resume=True,
    progress=False,
)
# runs of `sarb train` need no data: they are compared on the test images they share
comparison = sarb.compare(["runs/example", "runs/example-plain"], data.test)

print(comparison)
print(comparison.entries[1].difference, comparison.entries[1].verdict)
print(f"page: {comparison.save('runs/example-compared')}")
