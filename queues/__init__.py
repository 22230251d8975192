"""Queues: which are accepted, how they are opened and closed (`states`, `state_commands`), their controller and pages."""
