"""What pages are made of: tables, forms, phases, charts."""
