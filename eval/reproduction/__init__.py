"""`rearrange reproduce`: trainings, evaluations and the paper's figures beside them."""
