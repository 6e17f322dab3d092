"""What a scene that is not one of our homes is to a robot: drawers, doors, receptacles, and episodes in it. Needs no simulator."""
