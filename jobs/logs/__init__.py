"""What pods have printed, as people read it: lines of many logs in order of time, colours and links."""
