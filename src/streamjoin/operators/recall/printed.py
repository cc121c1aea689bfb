"""The formulas of the document on QJoin (Wei, Li, Xu, Lv, Yang) as it prints them, to be compared with `needs`.

Nothing here decides anything. What is wrong with them:

    3         a short interval makes good at once what a long one has lost: it swings between 0 and more than 1
    7, 10     rows of a window, by delays in whole basic windows: bounds of the sums are divided by the width of a
              window twice, and the largest delay makes the window itself longer
    11, 12    upside down: comparisons over results, where a selectivity is results over comparisons
    Alg. 1    `d_x` is not set back for the next `d_y`, and where the target is reached `d_x` does not grow: the inner
              loop never ends
"""

from __future__ import annotations

from collections.abc import Sequence


def quality_wanted(target: float, pairs: float, found_before: float, share: float) -> float:
    """(3), solved for Q_L: the recall of the next interval, a `share` of the period, of which so much was found before.

    >>> round(quality_wanted(0.9, 600, 480, 0.1), 9)
    1.0
    >>> round(quality_wanted(0.9, 600, 440, 0.1), 3)
    1.667
    """
    return (target * pairs - found_before) / (pairs * share)


def rows_in_window(rate: float, window: float, basic: float, slack: float, delays: Sequence[float]) -> float:
    """(7): rows of the other input in a window of `n` basic ones; `delays[d]` is the share of rows with delay `d`.

    >>> rows_in_window(rate=10, window=4, basic=1, slack=2, delays=[0.5, 0.25, 0.25])
    52.5
    """
    parts = int(-(-window // basic))

    def arrived(part: int) -> float:
        return sum(delays[: int(part / basic) + 1])

    full = sum(rate * basic * arrived(part - 1) for part in range(1, parts))
    return full + rate * (window + slack - (parts - 1) * basic) * arrived(parts - 1)


def comparisons(rate: float, interval: float, rows: float) -> float:
    """(6): rows of an interval against the rows of a window.

    >>> comparisons(10, 2, 52.5)
    1050.0
    """
    return rate * interval * rows


def most_comparisons(rate: float, other: float, interval: float, window: float, longest: float) -> float:
    """(10): the same, if the window were longer by the largest delay.

    >>> most_comparisons(10, 10, 2, 4, 3)
    1400
    """
    return other * interval * rate * (window + longest)


def selectivity(compared: Sequence[float], results: Sequence[float], slack: int) -> float:
    """(11), and (12) with the largest delay: by delay, comparisons over results; it should be the other way round.

    >>> selectivity([90, 10], [9, 1], 1)
    10.0
    """
    return sum(compared[: slack + 1]) / sum(results[: slack + 1])


def predicted_recall(selectivities: tuple[float, float], found: float, most: float) -> float:
    """(4), (5) and (8): what is found with a slack over what there is, with the selectivity of each.

    >>> predicted_recall((10.0, 10.0), 1050, 1400)
    0.75
    """
    chosen, ideal = selectivities
    return chosen * found / (ideal * most)
