"""The gang scheduler: `snapshot` is the world, `cycle` decides, `engine` places, `consumer` and `writes` tie it to the log."""
