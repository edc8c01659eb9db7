"""Label Studio: the JSON export, an array of tasks whose annotations hold choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import option
from sarb.data.parse.stream import elements
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.readers.label_studio_names import image_files
from sarb.data.readers.label_studio_tasks import AGAIN, Export, short
from sarb.errors import check_choice
from sarb.labels import PRESENT, UNKNOWN


def load_label_studio(
    path: Path,
    *,
    unlisted: str | None = None,
    annotators: str | None = None,
    control: str | None = None,
    image_key: str | None = None,
    categories: str | None = None,
    root: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read Label Studio's JSON export: a chosen category is present, the rest by ``unlisted``.

    A task that was skipped (every annotation cancelled) or not annotated is unknown as a whole; a cancelled
    annotation beside others says nothing. Predictions are not knowledge and are ignored. A choice within a
    region counts for the image. Of nested choices (a list from parent to leaf) the leaf is the category.
    Categories are in alphabetical order, since the export does not say which could have been chosen.

    Args:
        path: the exported ``.json``.
        unlisted: what a category that was not chosen is, ``absent`` or ``unknown``; must be said.
        annotators: when several people annotated a task and differ. ``any``: chosen by at least one is
            present. ``all``: chosen by all is present, by some is unknown. What nobody chose goes by
            ``unlisted`` in both.
        control: name of the Choices whose answers are meant (``from_name``), or several, ``a,b``; must be
            said when there is more than one.
        image_key: key in a task's ``data`` that holds the image, if it is not ``image`` or the only one that
            looks so.
        categories: the names there should be, ``a,b,c`` or a file with one per line.
        root: folder of the images; by default the file's own, or its ``images/`` when they are only there.
            Of an upload or a URL the last part is the name (without its prefix of 8 digits when only that
            file exists), of ``/data/local-files/?d=PATH`` the path.
        check_files: look for the image files to find their folder and names.

    Raises:
        DataError: every fault of the file with the line its task starts on; a reading that must be chosen,
            with counts.
    """
    check_unlisted(unlisted)
    check_choice("value of option annotators:", annotators or "any", ("any", "all"))
    if path.is_dir() or path.suffix.lower() in (".csv", ".tsv", ".zip"):
        raise fault(path, f"expected the exported .json file; {AGAIN}", kind="bad-layout")
    declared = declared_names(categories, path)
    export = Export(path, image_key)
    for element in elements(path):
        export.add(element.value, element.line)
    controls = export.controls(control)
    facts, counts = _facts(export, controls, declared, annotators)
    values, names = facts.matrix(rest_label(export.problems, unlisted, *counts))
    silent = [row for row, task in enumerate(export.tasks) if not task.answers]
    values[silent] = UNKNOWN
    files, folder = image_files(path, [task.name for task in export.tasks], root, check_files)
    notes: dict[str, object] = {
        "unlisted": unlisted,
        "annotators": annotators,
        "control": ",".join(controls),
        "unanswered": len(silent),
        "predictions_ignored": export.predictions,
    }
    return assemble(
        export.problems,
        files,
        values,
        names,
        root=folder,
        lines=facts.lines,
        name="label_studio",
        notes=notes,
    )


def _facts(
    export: Export, controls: Sequence[str], declared: Sequence[str] | None, annotators: str | None
) -> tuple[Facts, tuple[int, int, int]]:
    """Return what was chosen, and the numbers of entries (present, not chosen by anybody, unknown)."""
    facts = Facts(export.problems, declared)
    counts = Counter[int]()
    _check_shared(export, controls)
    chosen = [[_chosen([answer], controls) for answer in task.answers] for task in export.tasks]
    disputed = sum(len(set.union(*sets)) - len(set.intersection(*sets)) for sets in chosen if sets)
    if disputed and annotators is None:
        _note_disputes(export.problems, chosen, disputed)
    for number, (task, sets) in enumerate(zip(export.tasks, chosen, strict=True)):
        # by number: an image that occurs in two tasks must not become one row
        row = facts.image(str(number), line=task.line)
        for name in sorted(set[str]().union(*sets)):
            agreed = all(name in names for names in sets)
            label = PRESENT if annotators == "any" or agreed else UNKNOWN
            facts.say(row, name, label, task.line)
            counts[label] += name in facts.columns
    if not facts.columns:
        export.problems.raise_any()
        raise fault(export.path, f"nothing was chosen in {', '.join(controls)}", kind="empty")
    answered = sum(map(bool, chosen))
    columns = len(facts.columns)
    rest = answered * columns - counts.total()
    return facts, (counts[PRESENT], rest, len(chosen) * columns - counts[PRESENT] - rest)


def _chosen(answers: Sequence[Mapping[str, set[str]]], controls: Sequence[str]) -> set[str]:
    """Return what these answers choose in these controls."""
    return set[str]().union(*(answer.get(control, ()) for answer in answers for control in controls))


def _note_disputes(problems: Problems, chosen: list[list[set[str]]], disputed: int) -> None:
    tasks = sum(len(set(map(frozenset, sets))) > 1 for sets in chosen)
    agreed = sum(len(set.intersection(*sets)) for sets in chosen if sets)
    problems.add(
        f"several people annotated {tasks} of the tasks and differ; say how to read them"
        f"\n  {option('annotators', 'any')}: {agreed + disputed} present"
        f"\n  {option('annotators', 'all')}: {agreed} present, {disputed} unknown where they differ",
        kind="undeclared-annotators",
    )


def _check_shared(export: Export, controls: Sequence[str]) -> None:
    """Note a choice that two controls have: 'yes' to two questions is not one category."""
    owners: dict[str, str] = {}
    noted: set[str] = set()
    for task in export.tasks if len(controls) > 1 else ():
        for control in controls:
            for name in _chosen(task.answers, [control]) - noted:
                if owners.setdefault(name, control) != control:
                    noted.add(name)
                    both = f"{short(name)} is a choice of '{owners[name]}' and of '{control}'"
                    export.problems.add(
                        f"{both}; read one of them, {option('control', control)}",
                        line=task.line,
                        kind="shared-choice",
                        value=name[:60],
                    )
