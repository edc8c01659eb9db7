"""Label statistics of a data set per split, category, image and pair: as text, JSON and a page."""

import sarb
from sarb.data.check.stats import stats
from sarb.workflows.statistics import save_stats

data = sarb.load("demo", train=64, test=32, size=64).hide(known=0.2, seed=0)
found = stats(data)
print(found)

train = found.splits[0]
print(f"{100 * train.known_share:.0f} % of the labels of {train.images} training images are known")
print(f"an image has {train.mean_positives:.2f} known positives on average")
print(f"an image has an estimated {train.estimated_positives:.2f} positives, known or not")
found.save("runs/example-stats/stats.json")
print(save_stats(found, "runs/example-stats/stats.html", samples=12, seed=0))
