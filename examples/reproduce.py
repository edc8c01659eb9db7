"""Train two rows of the paper's table at a toy size. Expect the table in the paper's layout; its numbers
mean nothing.

A second call finds the finished cells and only writes the table again.
"""

from pathlib import Path

from sarb.reproduce import QUICK, Plan, reproduce

small = {"train": 64, "test": 32, "size": 64}
plan = Plan(source="demo", out="runs/example-grid", data_options=small, recipe=QUICK["recipe"])
# leave rows and shares out for the whole table: seven rows at nine shares of known labels
outcome = reproduce("comparison", plan, rows=["SSGRL", "Ours"], shares=[0.5], full=False, progress=False)

print(outcome.page, "failed:", outcome.failed)
print(Path("runs/example-grid/tables/averages.md").read_text(encoding="utf-8"))
