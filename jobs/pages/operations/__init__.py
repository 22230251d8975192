"""The pages of operations: which jobs are chosen, the confirmation, and the result of each job."""
