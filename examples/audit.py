"""Audit a data set with the model of a run: duplicates, doubtful labels, bad images, related categories."""

import sarb

data = sarb.load("demo", train=64, test=32, size=64).hide(known=0.3, seed=0)
found = sarb.audit("runs/example", data, out="runs/example-audit", overwrite=True)

print(found)
for finding in found.findings[:3]:
    print(finding.kind, finding.file_name, finding.detail)
