"""Scenes of a Habitat data set in the embedded simulator, without Habitat."""
