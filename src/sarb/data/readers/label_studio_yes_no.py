"""Label Studio exports in which every control asks yes or no about one category."""

from __future__ import annotations

from collections.abc import Sequence

from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import counted
from sarb.data.readers.label_studio_names import YES_NO, category_name
from sarb.data.readers.label_studio_tasks import Export
from sarb.errors import data_option
from sarb.labels import PRESENT, UNKNOWN


def yes_no_facts(
    export: Export, controls: Sequence[str], declared: Sequence[str] | None, annotators: str | None
) -> Facts:
    """Return what was answered: yes is present, no is absent; an untouched question gives no fact.

    Args:
        export: the tasks.
        controls: those to read; each is named after its category.
        declared: the expected categories.
        annotators: where yes and no were said, ``any`` makes it present and ``all`` unknown; None reports it.
    """
    facts = Facts(export.problems, declared)
    settled = PRESENT if annotators == "any" else UNKNOWN
    disputed = 0
    for number, task in enumerate(export.tasks):
        row = facts.image(str(number), line=task.line)
        for control in controls:
            answers = [answer[control] for answer in task.answers if control in answer]
            said = {YES_NO[choice.strip().lower()] for choices in answers for choice in choices}
            if said:
                disputed += len(said) > 1
                label = settled if len(said) > 1 else said.pop()
                facts.say(row, category_name(control), label, task.line)
    if disputed and annotators is None:
        export.problems.add(
            f"annotators disagree on {counted(disputed, 'label')}; declare how to combine their answers:"
            f"\n  {data_option('annotators', 'any')}: present"
            f"\n  {data_option('annotators', 'all')}: unknown where they disagree",
            kind="undeclared-annotators",
        )
    return facts
