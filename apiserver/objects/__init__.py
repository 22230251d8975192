"""What is answered about objects: the verbs, lists, subresources, and kinds that are computed."""
