"""A job: who was near the ball? `./sj explain docs/examples/near.py --table ball=... --table players=...`"""

import streamjoin as sj


def near(ball, players):
    return sj.join_within(ball, players, on=("x", "y"), radius=2.0, time="ts", window=sj.Range("2 seconds"))
