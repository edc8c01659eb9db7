"""Markdown and LaTeX, sign by sign."""

import re

from sarb.reproduce.results import Number
from sarb.reproduce.tables import Group, Table

TABLE = Table(
    "mAP",
    "mAP & more",
    ("Data", "Method", "10 %", "Ave."),
    (
        Group(
            ("my_data",),
            (("Ours ILRB fixed alpha", (Number(41.25), None)), ("SSGRL", (Number(-3.0, 0.26), Number(2.0)))),
        ),
        Group(
            ("paper",), (("SSGRL", (Number(1.0), Number(2.0))), ("Ours", (Number(1.04), Number(3.0)))), "none"
        ),
    ),
    ("A note.",),
)


def test_markdown():
    assert TABLE.to_markdown() == (
        "**mAP & more**\n\n"
        "| Data | Method | 10 % | Ave. |\n"
        "|---|---|---:|---:|\n"
        "| my_data | Ours ILRB fixed α | **41.2** | – |\n"
        "|  | SSGRL | −3.0 ± 0.3 | 2.0 |\n"
        "| paper | SSGRL | 1.0 | 2.0 |\n"
        "|  | Ours | 1.0 | 3.0 |\n\n"
        "A note.\n"
    )


def test_latex():
    assert TABLE.to_latex() == (
        "\\begin{table}[t]\n  \\centering\n  \\small\n  \\begin{tabular}{llrr}\n  \\toprule\n"
        "  Data & Method & 10 \\% & Ave. \\\\\n  \\midrule\n"
        "  my\\_data & Ours ILRB fixed $\\alpha$ & \\textbf{41.2} & -- \\\\\n"
        "   & SSGRL & $-$3.0 $\\pm$ 0.3 & 2.0 \\\\\n  \\midrule\n"
        "  paper & SSGRL & 1.0 & 2.0 \\\\\n   & Ours & 1.0 & 3.0 \\\\\n"
        "  \\bottomrule\n  \\end{tabular}\n  \\caption{mAP \\& more. A note.}\n  \\label{tab:mAP}\n\\end{table}\n"
    )


def test_numbers_printed_alike_are_both_best_and_equal_columns_have_none():
    lines = (
        ("a", (Number(1.04), Number(5.0))),
        ("b", (Number(1.0), Number(5.0))),
        ("c", (Number(0.0), Number(5.0))),
    )
    text = Table("t", "t", ("D", "M", "x", "y"), (Group(("d",), lines),)).to_markdown()
    assert re.findall(r"\*\*([\d.]+)\*\*", text) == ["1.0", "1.0"]
    smallest = Table("t", "t", ("D", "M", "x", "y"), (Group(("d",), lines, "smallest"),)).to_markdown()
    assert re.findall(r"\*\*([\d.]+)\*\*", smallest) == ["0.0"]
