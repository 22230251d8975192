"""Every page's address."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from volcano_ui.health import healthz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("", include("dashboard.accounts.urls")),
    path("jobs/", include("jobs.urls")),
]
