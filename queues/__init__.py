"""Queues: their admission, opening and closing (`states`, `state_commands`), their controller and their pages."""
