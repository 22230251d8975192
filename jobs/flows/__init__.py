"""Volcano's JobFlow and JobTemplate: rules and controller of jobs made from templates in the order of a graph."""
