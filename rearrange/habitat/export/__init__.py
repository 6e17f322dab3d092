"""Our homes as a Habitat scene data set: `rearrange scenes export format=habitat`."""
