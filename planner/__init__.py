"""PDDL task planner: chains skills to solve the Home Assistant Benchmark."""
