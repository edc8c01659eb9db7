"""Find everything that is wrong with a table before training: three faults, each with its line and column."""

from pathlib import Path

from PIL import Image

from sarb.data.check.source import check

folder = Path("runs/example-check")
folder.mkdir(parents=True, exist_ok=True)
for number, name in enumerate("abcd"):
    Image.new("RGB", (32, 32), (60 * number, 90, 120)).save(folder / f"{name}.png")
rows = "file_name,split,cat,dog a.png,train,1,0 b.png,train,O,1 c.png,test,1, e.png,test,0,1 a.png,test,1,0"
(folder / "labels.csv").write_text(rows.replace(" ", "\n"), encoding="utf-8")

found = check(folder / "labels.csv", encoding="binary")
print(found)  # a letter O for a zero, a file that is not there, an image in two splits
assert not found.ok
for finding in found.findings.of("error"):
    print(finding.kind, finding.line, finding.column, finding.value)
