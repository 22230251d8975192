"""Django's SQLite backend for one process that asks millions of small things: the same, with one layer instead of four."""
