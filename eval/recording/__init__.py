"""`rearrange record`: demonstrations as a data set that imitation learning reads."""
