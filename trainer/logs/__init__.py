"""What a run writes and shows: metrics files, progress on the screen, checkpoints at their intervals."""
