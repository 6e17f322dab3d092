"""Apartments: floor plans, furniture, household objects, and where a robot can stand; and what an episode is."""
