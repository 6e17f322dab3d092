"""From words to a checked configuration: what can be chosen for each command, and the composition of all of it."""
