"""Every page's address; with several clusters each has its pages below a prefix of its own."""

from __future__ import annotations

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from volcano_ui.health import healthz

pages: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("", include("dashboard.accounts.urls")),
    path("", include("dashboard.urls")),
    path("jobs/", include("jobs.urls")),
    path("flows/", include("jobs.pages.flows.urls")),
    path("cronjobs/", include("jobs.pages.crons.urls")),
    path("sweeps/", include("jobs.pages.sweeps.urls")),
    path("queues/", include("queues.urls")),
]
urlpatterns: list[URLPattern | URLResolver] = [path(settings.PREFIX, include(pages))]
handler400 = "dashboard.pages.errors.bad_request"
handler403 = "dashboard.pages.errors.forbidden"
handler404 = "dashboard.pages.errors.not_found"
handler500 = "dashboard.pages.errors.server_error"
