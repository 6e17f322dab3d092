"""`rearrange report`: evaluations and trainings as one HTML page."""
