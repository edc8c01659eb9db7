"""Measure the model of ``train.py`` on images it has not seen. Unknown labels would not be scored."""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
model = sarb.load_model("runs/example")
report = sarb.evaluate(model, data.test)

print(report)
print(f"mAP {report.mAP:.1f}, OF1 {report['OF1']:.1f}, CF1 {report['CF1']:.1f}")
best = max(report.per_category, key=lambda row: row["F1"] if row["positives"] else 0)
print(f"recognised best: {best['category']}")
