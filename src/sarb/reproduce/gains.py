"""Does the gain grow as fewer labels are known, and how much of the room above a baseline is closed?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sarb.reproduce import published
from sarb.reproduce.comparison import INTERPOLATED, PLAIN, Line, percent
from sarb.reproduce.names import BASELINE, COMPARISON, LOSS, OURS, POOLED
from sarb.reproduce.results import Number, Results
from sarb.reproduce.tables import Group, Table

#: points of mAP; a share of a smaller room would be noise
LEAST_ROOM = 1.0
NO_ROOM = f" Rooms below {LEAST_ROOM:g} mAP are left out."
#: mAP of a row at a known share, or None
Find = Callable[[str, float], float | None]


def gain_tables(results: Results, title: str, rows: Sequence[str], paper: str | None) -> list[Table]:
    """Gain of SARB, and room closed above the pooled baseline and above SSGRL.

    Our mAP is interpolated where it is compared with published numbers, because they are.
    """

    def ours(row: str, known: float, metric: str = "mAP_interpolated" if paper else "mAP") -> float | None:
        number = results.number(row, known, metric)
        return None if number is None else number.value

    def plain(row: str, known: float) -> float | None:
        return ours(row, known, "mAP")

    def theirs(row: str, known: float) -> float | None:
        return published.number(paper or "", row, known, "mAP")

    shares = results.shares(rows)
    tables = []
    if shares and OURS in rows:
        tables.append(_gain(title, rows, shares, ours, theirs, paper))
    if shares and ours(POOLED, 1.0) is not None:
        tables.append(_room_pooled(title, rows, shares, plain))
    if len(shares) > 1 and BASELINE in rows and OURS in rows:
        tables.append(_room_baseline(title, rows, shares, ours, theirs, paper))
    return tables


def _gain(
    title: str, rows: Sequence[str], shares: Sequence[float], ours: Find, theirs: Find, paper: str | None
) -> Table:
    groups = [Group((title,), _gains([row for row in rows if row in COMPARISON], shares, ours), "none")]
    if paper:
        groups.append(
            Group((f"published, {published.TITLES[paper]}",), _gains(COMPARISON, shares, theirs), "none")
        )
    notes = [
        INTERPOLATED if paper else PLAIN,
        "The paper reports that the gain grows as fewer labels are known.",
    ]
    if len(shares) > 1:
        _, gains = groups[0].lines[0]
        first = gains[0]
        last = gains[len(shares) - 1]
        if first is not None and last is not None:
            low = f"{first.value:+.1f} at {percent(shares[0])}"
            high = f"{last.value:+.1f} at {percent(shares[-1])}"
            notes.append(f"Here the gain over {BASELINE} is {low} and {high}.".replace("-", "−"))
    head = ("Data", "Difference of mAP", *map(percent, shares))
    return Table("gain", f"{OURS} against the baselines", head, tuple(groups), tuple(notes))


def _gains(rows: Sequence[str], shares: Sequence[float], find: Find) -> tuple[Line, ...]:
    others = [row for row in rows if row != OURS]

    def best(known: float) -> float | None:
        return max((value for row in others if (value := find(row, known)) is not None), default=None)

    over_baseline = tuple(_less(find(OURS, known), find(BASELINE, known)) for known in shares)
    over_best = tuple(_less(find(OURS, known), best(known)) for known in shares)
    return (f"{OURS} − {BASELINE}", over_baseline), (f"{OURS} − best baseline", over_best)


def _less(one: float | None, other: float | None) -> Number | None:
    return None if one is None or other is None else Number(one - other)


def room_closed(value: float | None, bottom: float | None, top: float | None) -> Number | None:
    """(value − bottom)/(top − bottom) in percent; None if one is missing or the room is too small."""
    if value is None or bottom is None or top is None or top - bottom < LEAST_ROOM:
        return None
    return Number(100 * (value - bottom) / (top - bottom))


def _room_pooled(title: str, rows: Sequence[str], shares: Sequence[float], ours: Find) -> Table:
    top = ours(POOLED, 1.0)
    lines: list[Line] = [
        (row, tuple(room_closed(ours(row, known), ours(POOLED, known), top) for known in shares))
        for row in rows
        if row != POOLED
    ]
    edges: list[Line] = [(f"mAP of {POOLED}", tuple(_less(ours(POOLED, known), 0.0) for known in shares))]
    note = "0 is the pooled baseline at the same proportion, 100 is the pooled baseline with all labels "
    note += f"(mAP {top:.1f}).{NO_ROOM}"
    head = ("Data", "Method", *map(percent, shares))
    groups = (Group((title,), tuple(lines)), Group((title,), tuple(edges), "none"))
    return Table("room", "Room closed above the pooled baseline, in percent", head, groups, (note, PLAIN))


def _room_baseline(
    title: str, rows: Sequence[str], shares: Sequence[float], ours: Find, theirs: Find, paper: str | None
) -> Table:
    """The same above SSGRL; the top is its largest proportion, as the paper never trains with all labels."""
    low = shares[:-1]
    high = shares[-1]

    def lines(chosen: Sequence[str], find: Find) -> tuple[Line, ...]:
        top = find(BASELINE, high)
        return tuple(
            (row, tuple(room_closed(find(row, known), find(BASELINE, known), top) for known in low))
            for row in chosen
            if row != BASELINE
        )

    groups = [Group((title,), lines(rows, ours))]
    if paper:
        groups.append(Group((f"published, {published.TITLES[paper]}",), lines(COMPARISON, theirs)))
    caption = f"Room closed above {BASELINE}, in percent"
    note = f"0 is {BASELINE} at the same proportion, 100 is {BASELINE} at {percent(high)}." + NO_ROOM
    notes = (note, INTERPOLATED if paper else PLAIN)
    return Table(
        f"room-{BASELINE.lower()}", caption, ("Data", "Method", *map(percent, low)), tuple(groups), notes
    )


def steadiness_table(results: Results, title: str) -> list[Table]:
    """How much the loss changes per step with and without PLRB, at the smallest proportion of both."""
    if len(results.rows(LOSS)) < 2:
        return []
    results = results.common(LOSS)
    if not results.shares(LOSS):
        return []
    known = results.shares(LOSS)[0]
    lines = list[Line]()
    for row in results.rows((BASELINE, *LOSS, "Ours PLRB")):
        mean, change = (results.number(row, known, name) for name in ("loss_mean", "loss_change"))
        share = Number(100 * change.value / mean.value) if mean and change and mean.value else None
        lines.append((row, (mean, change, share)))
    note = (
        f"At {percent(known)} known labels, over the second half of training. The loss is the sum of all "
        "terms of a method, and with PLRB it has more terms, so compare the last column (change in percent "
        f"of the mean). With PLRB: {LOSS[0]}; without: {LOSS[1]}."
    )
    head = ("Data", "Method", "mean loss", "deviation of its change per step", "in % of the mean")
    groups = (Group((title,), tuple(lines), "none"),)
    return [Table("steadiness", "Steadiness of the training loss", head, groups, (note,), digits=3)]
