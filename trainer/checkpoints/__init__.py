"""Files of a run: what a checkpoint holds, when it is written, whether it fits, and who owns the directory."""
