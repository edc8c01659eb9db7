"""Label Studio: the JSON export, an array of tasks whose annotations contain choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import counted
from sarb.data.parse.stream import elements
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.readers.label_studio_names import YES_NO, image_files
from sarb.data.readers.label_studio_tasks import AGAIN, Export, short
from sarb.data.readers.label_studio_yes_no import yes_no_facts
from sarb.errors import check_choice, data_option
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
    """Read Label Studio's JSON export: a chosen category is present; ``unlisted`` decides about the others.

    If every choice is yes or no, each control is a category: yes is present, no is absent, and a question that
    nobody touched is unknown. ``unlisted`` is not needed then.

    All labels of a task are unknown if it was skipped (every annotation cancelled) or not annotated. A
    cancelled annotation next to others is ignored, and so are predictions, which come from a model. A choice
    in a region counts for the whole image. For nested choices (a list from parent to leaf) the leaf is the
    category. Categories are in alphabetical order, because the export does not list the possible choices.

    Args:
        path: the exported ``.json``.
        unlisted: what a category that was not chosen is, ``absent`` or ``unknown`` (required, except for
            yes/no questions).
        annotators: what to do if annotators disagree. ``any``: a category that at least one chose is present.
            ``all``: a category that all chose is present, one that only some chose is unknown. In both cases
            ``unlisted`` decides about categories that nobody chose.
        control: name of the Choices control to read (``from_name``), or several, ``a,b`` (required if there
            is more than one).
        image_key: key of the image in a task's ``data`` (default: ``image``, or the only key that looks like
            an image).
        categories: expected categories, ``a,b,c`` or a file with one per line.
        root: folder of the images (default: the folder of the file, or its ``images/`` if they are only
            there). The image name is the last part of an upload or URL (without its 8-digit prefix if only
            that file exists), and the path in ``/data/local-files/?d=PATH``.
        check_files: look for the image files to find their folder and names.

    Raises:
        DataError: all problems, with the line on which the task starts; a choice that the user must make,
            with counts.
    """
    check_unlisted(unlisted)
    check_choice("value of option annotators:", annotators or "any", ("any", "all"))
    if path.is_dir() or path.suffix.lower() in (".csv", ".tsv", ".zip"):
        raise fault(path, f"expected an exported .json file; {AGAIN}", kind="bad-layout")
    declared = declared_names(categories, path)
    export = Export(path, image_key)
    for element in elements(path):
        export.add(element.value, element.line)
    yes_no = unlisted is None and export.asks_yes_no(control)
    controls = export.controls(control, yes_no)
    if yes_no:
        facts = yes_no_facts(export, controls, declared, annotators)
        values, names = facts.matrix(UNKNOWN)
    else:
        facts, counts = _facts(export, controls, declared, annotators)
        values, names = facts.matrix(rest_label(export.problems, unlisted, *counts))
    silent = [row for row, task in enumerate(export.tasks) if not task.answers]
    values[silent] = UNKNOWN
    files, folder = image_files(path, [task.name for task in export.tasks], root, check_files)
    notes: dict[str, object] = {
        "unlisted": "unknown" if yes_no else unlisted,
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
    """Return what was chosen, and the numbers of entries (present, chosen by nobody, unknown)."""
    facts = Facts(export.problems, declared)
    counts = Counter[int]()
    _check_shared(export, controls)
    chosen = [[_chosen([answer], controls) for answer in task.answers] for task in export.tasks]
    disputed = sum(len(set.union(*sets)) - len(set.intersection(*sets)) for sets in chosen if sets)
    if disputed and annotators is None:
        _note_disputes(export.problems, chosen, disputed)
    for number, (task, sets) in enumerate(zip(export.tasks, chosen, strict=True)):
        # use the number as name: an image in two tasks must not become one row
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
    """Return everything that these answers choose in these controls."""
    return set[str]().union(*(answer.get(control, ()) for answer in answers for control in controls))


def _note_disputes(problems: Problems, chosen: list[list[set[str]]], disputed: int) -> None:
    tasks = sum(len(set(map(frozenset, sets))) > 1 for sets in chosen)
    agreed = sum(len(set.intersection(*sets)) for sets in chosen if sets)
    problems.add(
        f"annotators disagree on {counted(tasks, 'task')}; declare how to combine their answers:"
        f"\n  {data_option('annotators', 'any')}: {agreed + disputed} present"
        f"\n  {data_option('annotators', 'all')}: {agreed} present, {disputed} unknown where they disagree",
        kind="undeclared-annotators",
    )


def _check_shared(export: Export, controls: Sequence[str]) -> None:
    """Report a choice that belongs to two controls: 'yes' to two questions is not one category."""
    owners: dict[str, str] = {}
    noted: set[str] = set()
    for task in export.tasks if len(controls) > 1 else ():
        for control in controls:
            for name in _chosen(task.answers, [control]) - noted:
                if owners.setdefault(name, control) != control:
                    noted.add(name)
                    hint = ""
                    if name.strip().lower() in YES_NO:
                        hint = ", or leave out option unlisted if each of them asks about one category"
                    both = f"{short(name)} is a choice in both '{owners[name]}' and '{control}'"
                    export.problems.add(
                        f"{both}; read only one of them, for example {data_option('control', control)}{hint}",
                        line=task.line,
                        kind="shared-choice",
                        value=name[:60],
                    )
