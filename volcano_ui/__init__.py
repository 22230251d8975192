"""The Django project: wiring only. Importing it makes the Celery app that shared tasks belong to."""

from __future__ import annotations

from volcano_ui.celery import app as celery_app

__all__ = ("celery_app",)
