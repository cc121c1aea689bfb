"""What plans and stages ask of a configuration is in the contract: whoever keeps to it can be run, told, compared."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from streamjoin.operators import Configuration, Context, Operator, Passing
from streamjoin.operators.contract import ALONE
from streamjoin.plan.describing import DESCRIBERS
from streamjoin.plan.identity import identity_of
from tests.function_trees import SHAPES, plan_of, tree


@pytest.mark.parametrize("kind", DESCRIBERS, ids=lambda kind: kind.__name__)
def test_every_operator_of_a_plan_keeps_to_the_contract(kind: type) -> None:
    assert issubclass(kind, Configuration)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_join_says_of_itself_what_it_was_told(shape: str) -> None:
    how = "left" if "interval" not in shape and shape != "time" else "inner"
    plan = plan_of(tree(shape, how=how), emit="ordered")
    join = plan.stages[0].nodes[0].config
    assert isinstance(join, Configuration)
    assert join.terms is not None
    assert (join.terms.how, join.terms.emit, join.terms.hold) == (how, "ordered", join.hold)
    chooses = any(word in shape for word in ("as of", "best", "nearest"))
    assert (join.terms.chooser is not None) == (join.terms.choice is not None) == chooses
    said = identity_of(plan, plan.stages[0])
    assert said["how"].startswith(how)
    assert said["emit"].startswith("ordered")
    assert (said["choice"] != "none") == chooses


@dataclass(frozen=True)
class Least(Configuration):
    """Nothing but what must be said."""

    schema: pa.Schema

    @property
    def fingerprint(self) -> str:
        return "least"

    def build(self, context: Context = ALONE) -> Operator:
        return Passing(self.schema).build(context)


def test_what_most_would_answer_need_not_be_said() -> None:
    least = Least(pa.schema([]))
    assert (least.areas, least.terms, least.probes_many, least.judges, least.puts_off) == (0, None, False, False, False)
