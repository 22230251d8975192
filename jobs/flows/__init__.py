"""Volcano's JobFlow and JobTemplate: rules and controller of jobs that are made from templates, one after the other."""
