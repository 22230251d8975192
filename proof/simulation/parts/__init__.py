"""The parts of a world: processes on a virtual clock, machines, servers and databases, with what goes wrong inside each."""
