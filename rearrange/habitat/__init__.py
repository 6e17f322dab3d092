"""Homes in Habitat-Sim (`sim=habitat`): the same skills, planner and evaluation, with Bullet's physics and its renderer.

docs/habitat.md says what is needed and how to get it.
"""
