"""The Django project: wiring only. Importing it creates the Celery app of the shared tasks."""

from __future__ import annotations

from volcano_ui.celery import app as celery_app

__all__ = ("celery_app",)
