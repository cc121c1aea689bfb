"""What is to be done: logical nodes, rules, planner, explain."""
