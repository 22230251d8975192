"""JobFlow and JobTemplate: jobs that are made from templates, one after the other."""
