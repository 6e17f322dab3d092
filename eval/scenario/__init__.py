"""`rearrange eval hab=...`: whole scenarios, planned and carried out skill by skill."""
