"""`rearrange bench ...`: one measurement a file, and the models and workloads that they share."""
