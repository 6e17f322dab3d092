"""Episodes are drawn here, of skills and of whole scenarios, and checked for whether a robot can do what they ask."""
