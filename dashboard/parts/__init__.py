"""The parts of pages: tables, filters, forms, phases, charts."""
