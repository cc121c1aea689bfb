"""SWEEP: merges in postorder against level order, when all groups are there."""

from __future__ import annotations

from typing import Final

from benchmarks import sweep
from benchmarks.reproduce.documents import SWEEP, SWEEP_DIFFERENT
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Findings, beside, compared
from benchmarks.sweep_experiment import SIZE

QUICK_SIZE: Final = 6_000  # just enough to be written


def measure(effort: Effort) -> Findings:
    """Both orders on the same groups."""
    outcome = sweep.traversal(QUICK_SIZE if effort.quick else SIZE, effort.say)
    post, level = (outcome.figures[order] for order in ("postorder", "level order"))
    lines = [
        compared(
            "postorder suits finite streams better than level order: more early results",
            f"{post['mean']:.1%} of the results have left on average over all page accesses, in level order "
            f"{level['mean']:.1%}; after half of the accesses {post['half']:.1%} and {level['half']:.1%}",
            post["mean"] > level["mean"],
            "Only merges with the oldest group emit here, and with so few groups both orders reach them alike.",
        ),
        beside(
            "page accesses of both",
            f"{post['accesses']:,} in postorder, {level['accesses']:,} in level order",
            "Fewer in postorder: the oldest group is thinned while it grows."
            if post["accesses"] < level["accesses"]
            else "Postorder spares none.",
        ),
    ]
    return Findings(
        lines=lines,
        plots=list(outcome.plots.values()),
        checks=[Check("both orders have the same results, in order", outcome.results > 0)],
        shortened=f"{QUICK_SIZE:,} instead of {SIZE:,} elements of each stream." if effort.quick else "",
        different=SWEEP_DIFFERENT,
        figures=outcome.figures,
    )


EXPERIMENT: Final = Experiment("sweep-order", SWEEP, "section 4.2", "Postorder against level order", measure, minutes=1)
