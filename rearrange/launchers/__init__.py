"""Where commands run that another command starts: one after another here, several at once, or as jobs of SLURM, by Hydra's launchers."""
