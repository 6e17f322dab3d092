"""Scenes of a Habitat data set that are not our homes: their floor, receptacles, drawers and doors, and their episodes."""
