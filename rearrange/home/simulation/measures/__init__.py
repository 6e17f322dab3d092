"""What a set of homes offers, measured: `rearrange scenes measure`."""
