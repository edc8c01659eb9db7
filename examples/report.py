"""Write the pages and pictures about the run of ``train.py``."""

import sarb
from sarb.report import write_report

data = sarb.load("demo", train=64, test=32, size=64)
report = sarb.evaluate(sarb.load_model("runs/example"), data.test)
report.save("runs/example")  # metrics.json, per_category.csv and plots
print(write_report("runs/example"))
