"""The pages of operations: which jobs are chosen, what is asked before it begins, and what has become of each job."""
