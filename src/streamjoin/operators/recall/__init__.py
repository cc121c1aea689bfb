"""Joins to a recall target: from counts of rows to what a slack would lose, and from that to the slack.

counts      rows per (class of keys, cell of time): what travels, and is remembered
needs       the slack that each pair needs; what is lost at each slack; the predicted recall
first_period, by_age, learned, whole_periods
            what groups of counts say of a period: at the beginning, and how much periods differ
controller  how much slack is enough
model       all of it for the two inputs of a join
printed     the formulas as the document on QJoin prints them, for comparison
"""
