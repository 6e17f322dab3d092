"""The home: flats and their contents, robot, simulator, pictures and episodes, and what all of these share."""
