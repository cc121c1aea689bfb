"""Whatever is written, a query is planned or refused: no other error, and nothing is left out in silence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streamjoin.errors import StreamjoinError
from streamjoin.language import parse_cql
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.rules import optimise
from tests.cql.streams import SCHEMAS, TIMES
from tests.cql.test_golden import sections

QUERIES = [sections(path.read_text())["query"] for path in sorted((Path(__file__).parent / "golden").glob("*.txt"))]
OTHER_WORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT SEMI ANTI ON USING UNION ALL DISTINCT EXCEPT ( ) [ ] , . * +
    - = < > AND OR NOT NULL IN BETWEEN CASE WHEN THEN END AS WITH ISTREAM OVER FILTER NOW ROWS RANGE 5 SECONDS 1.5D 'x'
    `k` R S k a x COUNT SUM distance overlaps ASOF BEST MATCH WITHIN INTERVAL :: -> ? : ; LATERAL VALUES EXISTS ROLLUP
"""


def broken(draw: random.Random, query: str) -> str:
    words = [token.text for token in tokens(query)]
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(words) + 1)
        change = draw.randrange(4)
        if change == 0:
            words.insert(at, draw.choice(OTHER_WORDS.split()))
        elif change == 1 and len(words) > 1:
            del words[min(at, len(words) - 1)]
        elif change == 2:
            words[min(at, len(words) - 1)] = draw.choice(OTHER_WORDS.split())
        else:
            words.insert(at, draw.choice(words))
    return " ".join(words)


@pytest.mark.parametrize("seed", range(20))
def test_a_query_is_planned_or_refused(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        query = broken(draw, draw.choice(QUERIES))
        try:
            relation = parse_cql(query, SCHEMAS, times=TIMES).relation
            optimised = optimise(relation, SCHEMAS)
        except StreamjoinError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {query}") from error
        assert optimised.columns == relation.columns, f"seed {seed}: {query}"
