"""Write a list of labels as a table, read it back, and see that nothing has changed."""

from pathlib import Path

import sarb
from sarb.data.writers.write import convert, write

folder = Path("runs/example-labels")
folder.mkdir(parents=True, exist_ok=True)
source = folder / "list.csv"
source.write_text(
    "fname,labels,is_valid\na.jpg,cat;dog,False\nb.jpg,,False\nc.jpg,hot dog,True\n", encoding="utf-8"
)

# a list says what is present; what the rest means must be said
meaning = {"unlisted": "absent", "label_delimiter": ";", "is_valid": "test", "check_files": False}
data = sarb.load(f"list:{source}", **meaning)
print(data.train.labels, data.categories)

options = write(data, folder / "labels.csv", overwrite=True)
print((folder / "labels.csv").read_text(encoding="utf-8"))
again = sarb.load(f"table:{folder / 'labels.csv'}", **options, check_files=False)
print("the same labels:", again.train.labels == data.train.labels and again.test.labels == data.test.labels)

# the same from a shell: sarb data convert list:list.csv -o unlisted=absent … --to npy --out labels.npy
print(convert(f"list:{source}", folder / "labels.npy", options=meaning, overwrite=True))
