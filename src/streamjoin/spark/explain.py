"""What a frame will do, in words, and as a picture."""

from __future__ import annotations

from streamjoin.plan.explaining import draw_plan, explain_plan
from streamjoin.plan.picture import explain_relation
from streamjoin.spark.marks import CallPlan


class Explanation(str):
    """A plan in words; in a notebook the picture of it."""

    picture: str | None = None

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```" if self.picture is None else f"```mermaid\n{self.picture}\n```"


def explanation(call: CallPlan) -> Explanation:
    """A call in words: of a query also the tree as it was written, and as it runs."""
    lines = explain_plan(call.plan)
    if not call.numbered:
        written, runs = (explain_relation(each) for each in (call.written, call.query.relation))
        leaves = [] if call.query.to_stream is None else [f"leaves as      {call.query.to_stream}"]
        lines = ["as written", *_indented(written), "as it runs", *_indented(runs), *leaves, *lines]
    told = Explanation("\n".join(lines))
    told.picture = draw_plan(call.plan)
    return told


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
