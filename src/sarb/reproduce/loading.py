"""The data of a grid, read once before its cells read them."""

from __future__ import annotations

import dataclasses

from sarb.data import Data, load, reader_name
from sarb.reproduce.cells import Plan
from sarb.settings import read_recipe, section


def with_data(plan: Plan) -> tuple[Plan, Data]:
    """The plan with the options that its recipe has for the data, and the data; generated data are there then."""
    described = section(read_recipe(plan.recipe), "data", reader_name(plan.source))
    options = {**{key: value for key, value in described.items() if key != "source"}, **plan.data_options}
    return dataclasses.replace(plan, data_options=options), load(plan.source, **options)
