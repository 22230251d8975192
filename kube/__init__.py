"""Kubernetes' and Volcano's object model in plain Python: kinds, quantities, selectors, patches, errors."""
