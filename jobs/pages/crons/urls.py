"""The addresses of the cron job pages."""

from __future__ import annotations

from django.urls import path

from jobs.pages.crons import views

app_name = "cronjobs"
urlpatterns = [
    path("", views.cron_list, name="list"),
    path("<str:namespace>/<str:name>/", views.cron_detail, name="detail"),
    path("<str:namespace>/<str:name>/suspend/", views.set_suspended, {"wish": True}, name="suspend"),
    path("<str:namespace>/<str:name>/resume/", views.set_suspended, {"wish": False}, name="resume"),
    path("<str:namespace>/<str:name>/run/", views.run_now, name="run"),
    path("<str:namespace>/<str:name>/delete/", views.cron_delete, name="delete"),
]
