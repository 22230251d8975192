"""`up`: starting the programs of an installation, looking after them, and stopping them."""
