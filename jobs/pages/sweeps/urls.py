"""The addresses of the pages of sweeps."""

from __future__ import annotations

from django.urls import path

from jobs.pages.sweeps import views

app_name = "sweeps"
# No namespace can be named "-".
urlpatterns = [
    path("", views.sweep_list, name="list"),
    path("-/new/", views.sweep_new, name="new"),
    path("<str:namespace>/<str:name>/", views.sweep_detail, name="detail"),
    path("<str:namespace>/<str:name>/delete/", views.sweep_delete, name="delete"),
]
