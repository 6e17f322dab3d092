"""Processes that step environments, and how the learner talks to them. No torch is imported in a worker."""
