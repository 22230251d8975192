"""What people do with each client, a module for each recording."""
