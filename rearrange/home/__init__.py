"""The home: flats and what is in them, the robot, the simulator, what is seen and drawn, episodes; and what every part of it needs."""
