"""What is to be done, and how: trees of relations, rules, the lowering, physical plans, explain."""
