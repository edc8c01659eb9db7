"""A table in the paper's layout, as Markdown and as LaTeX (booktabs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sarb.files import atomic_write
from sarb.report.markdown import inline
from sarb.reproduce.results import Number

#: most characters of a caption, in which the name of the data stands
CAPTION = 300
#: special characters of LaTeX, and the symbols in our row names and captions
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "–": "--",
    "×": r"$\times$",
}


@dataclass(frozen=True)
class Group:
    """Lines that belong together: their shared leading cells, and (method, numbers) per line.

    ``best`` tells which number of each column to highlight: the largest, the smallest, or none.
    """

    lead: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Number | None, ...]], ...]
    best: str = "largest"


@dataclass(frozen=True)
class Table:
    """A table; ``name`` is its file name, ``head`` the names of all columns."""

    name: str
    caption: str
    head: tuple[str, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    digits: int = 1

    def to_markdown(self) -> str:
        """A Markdown table under its caption; the best of each column of a group is bold."""
        lead = self._leading()
        rule = "|" + "---|" * lead + "---:|" * (len(self.head) - lead)
        lines = [_piped([_sign(name, "α", "β") for name in self.head]), rule]
        for group in self.groups:
            best = _best(group, self.digits)
            for line, (method, numbers) in enumerate(group.lines):
                shared = group.lead if line == 0 else tuple("" for _ in group.lead)
                cells = [
                    self._cell(number, position in best, "**{}**")
                    for position, number in _placed(line, numbers)
                ]
                lines.append(_piped([*shared, _sign(method, "α", "β"), *cells]))
        return "\n\n".join([f"**{inline(self.caption, CAPTION)}**", "\n".join(lines), *self.notes]) + "\n"

    def to_latex(self) -> str:
        """A LaTeX ``table`` environment; needs the package booktabs."""
        lead = self._leading()
        lines = [
            r"\begin{table}[t]",
            r"  \centering",
            r"  \small",
            r"  \begin{tabular}{" + "l" * lead + "r" * (len(self.head) - lead) + "}",
            r"  \toprule",
            "  " + _latex_line([_latex(name) for name in self.head]),
        ]
        for group in self.groups:
            best = _best(group, self.digits)
            lines.append(r"  \midrule")
            for line, (method, numbers) in enumerate(group.lines):
                shared = group.lead if line == 0 else tuple("" for _ in group.lead)
                cells = [
                    _latex(self._cell(number, False, ""))
                    if position not in best
                    else r"\textbf{" + _latex(self._cell(number, False, "")) + "}"
                    for position, number in _placed(line, numbers)
                ]
                lines.append("  " + _latex_line([*map(_latex, shared), _latex(method), *cells]))
        caption = " ".join([self.caption + ".", *self.notes])
        lines += [r"  \bottomrule", r"  \end{tabular}", rf"  \caption{{{_latex(caption)}}}"]
        return "\n".join([*lines, rf"  \label{{tab:{self.name}}}", r"\end{table}"]) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``NAME.md`` and ``NAME.tex``."""
        for suffix, text in (("md", self.to_markdown()), ("tex", self.to_latex())):
            with atomic_write(folder / f"{self.name}.{suffix}") as file:
                file.write(text)

    def _leading(self) -> int:
        return len(self.groups[0].lead) + 1

    def _cell(self, number: Number | None, best: bool, mark: str) -> str:
        if number is None:
            return "–"
        shown = round(number.value, self.digits) + 0.0  # turns -0.0 into 0.0
        text = f"{shown:.{self.digits}f}".replace("-", "−")
        if number.deviation is not None:
            text += f" ± {number.deviation:.{self.digits}f}"
        return mark.format(text) if best else text


def _placed(line: int, numbers: Sequence[Number | None]) -> list[tuple[tuple[int, int], Number | None]]:
    return [((line, column), number) for column, number in enumerate(numbers)]


def _best(group: Group, digits: int) -> set[tuple[int, int]]:
    """(line, column) of the best numbers of each column, including ties; none if all are equal."""
    if group.best == "none" or len(group.lines) < 2:
        return set()
    positions = set()
    for column in range(len(group.lines[0][1])):
        shown = {
            line: round(number.value, digits)
            for line, (_, numbers) in enumerate(group.lines)
            if (number := numbers[column]) is not None
        }
        if len(set(shown.values())) > 1:
            top = max(shown.values()) if group.best == "largest" else min(shown.values())
            positions |= {(line, column) for line, value in shown.items() if value == top}
    return positions


def _sign(name: str, alpha: str, beta: str) -> str:
    """Replace the names of Greek letters in a row name."""
    return name.replace("fixed alpha", f"fixed {alpha}").replace("fixed beta", f"fixed {beta}")


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in _sign(text, "α", "β"))


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
