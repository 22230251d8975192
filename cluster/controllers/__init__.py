"""The controllers that every cluster has, one a module; each is a consumer of the log (`cluster.consumers.consumer`)."""
