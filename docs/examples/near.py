"""A job: who was near the ball? `./sj explain docs/examples/near.py --table ball=... --table players=...`

Also over streams: `./sj run docs/examples/near.py --stream ball=... --stream players=... --out ... --checkpoint ...`
"""

import streamjoin as sj


def near(ball, players):
    return sj.join_within(
        ball,
        players,
        on=("x", "y"),
        radius=2.0,
        time="ts",
        window=sj.Range("2 seconds"),
        lateness=sj.Grace("1 second"),  # how late a row of a stream may be
        how="left",
    )
