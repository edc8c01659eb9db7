"""``audit_page``: what an audit found as one self-contained HTML page with thumbnails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sarb
from sarb.health.findings import KINDS, Audit, Finding
from sarb.report import html
from sarb.report.report import count

#: findings of a kind that are shown; the table has all
SHOWN = 24
#: side of a thumbnail in pixels
SIDE = 160
#: images that could not be read, on the page
LISTED = 50


@dataclass(frozen=True)
class Tile:
    """A finding: one image or two, a title, further lines, and what was found."""

    photos: Sequence[html.Photo]
    title: str
    lines: Sequence[str]
    note: str


@dataclass(frozen=True)
class Section:
    """All findings of a kind: tiles for images, a table for categories."""

    id: str
    heading: str
    remedy: str
    counted: str
    tiles: Sequence[Tile]
    table: html.Table | None


def audit_page(audit: Audit) -> str:
    """Return the page."""
    found = {kind: [item for item in audit.of(kind) if not item.leaks] for kind in KINDS}
    sections = [_section(audit, kind, items) for kind, items in found.items() if items]
    if audit.leaks:
        sections.insert(0, _leakage(audit, audit.leaks))
    return html.render(
        "audit.html",
        version=sarb.__version__,
        name=audit.name,
        summary=_summary(audit),
        cards=_cards(audit),
        notes=audit.notes,
        sections=sections,
        skipped=html.Table(
            ["image", "reason"],
            [[html.Cell(name), html.Cell(reason)] for name, reason in audit.skipped[:LISTED]],
        ),
        unreadable=len(audit.skipped),
        listed=LISTED,
    )


def _summary(audit: Audit) -> str:
    images = count(len(audit.images), "image", "images")
    if not audit.findings:
        return f"{images} audited. Nothing to fix was found."
    return f"{images} audited, {count(len(audit.findings), 'finding', 'findings')} to look at."


def _cards(audit: Audit) -> list[html.Card]:
    counts = audit.counts()
    doubled = counts["exact_duplicate"] + counts["near_duplicate"]
    faulty = sum(counts[kind] for kind in ("blurry", "dark", "bright", "blank", "tiny"))
    related = sum(counts[kind] for kind in ("same_category", "contained_category", "similar_name"))
    return [
        html.Card("Leakage", f"{len(audit.leaks):,}", "pairs in two splits", main=True),
        html.Card("Duplicates", f"{doubled:,}", f"pairs, {counts['exact_duplicate']:,} of them exact"),
        html.Card("Labels", f"{counts['label']:,}", "look wrong"),
        html.Card("Faulty images", f"{faulty:,}", "blurry, dark, bright, blank or tiny"),
        html.Card("Odd images", f"{counts['odd']:,}", "resemble no other"),
        html.Card("Categories", f"{related:,}", "pairs that overlap"),
    ]


def _leakage(audit: Audit, leaks: Sequence[Finding]) -> Section:
    remedy = (
        "The same picture is in two splits, so the test measures memory as well. Remove the first of each "
        "pair; the second is the test or validation image."
    )
    return Section("leakage", "Leakage", remedy, _counted(leaks), _tiles(audit, leaks), None)


def _section(audit: Audit, kind: str, found: Sequence[Finding]) -> Section:
    """The findings of a kind; pairs in two splits have their own section."""
    heading, remedy = KINDS[kind]
    if found[0].file_name:
        return Section(kind, heading, remedy, _counted(found), _tiles(audit, found), None)
    rows = [
        [html.Cell(item.label), html.Cell(item.detail), html.Cell(f"{item.score:.3f}", item.score)]
        for item in found
    ]
    table = html.Table(["category", "what was counted", "sure"], rows, sortable=True, tall=True)
    return Section(kind, heading, remedy, _counted(found), [], table)


def _counted(found: Sequence[Finding]) -> str:
    text = count(len(found), "finding", "findings")
    return (
        f"{text}; the {SHOWN} surest are shown, the CSV file has all." if len(found) > SHOWN else f"{text}."
    )


def _tiles(audit: Audit, found: Sequence[Finding]) -> list[Tile]:
    files = dict(
        zip(zip(audit.images.splits, audit.images.names, strict=True), audit.images.files, strict=True)
    )
    return [_tile(files, finding) for finding in found[:SHOWN] if finding.file_name]


def _tile(files: dict[tuple[str, str], Path], finding: Finding) -> Tile:
    places = [(finding.split, finding.file_name), (finding.other_split, finding.other_file)]
    places = [place for place in places if place[1]]
    photos = [
        replace(html.thumbnail(files[place], SIDE), alternative=f"{place[1]}, {place[0]} image")
        for place in places
    ]
    title, *lines = [*filter(None, [finding.label]), *(f"{name} ({split})" for split, name in places)]
    return Tile(photos, title, lines, finding.detail)
