"""The addresses of the pages of flows and job templates."""

from __future__ import annotations

from django.urls import path

from jobs.pages.flows import views

app_name = "flows"
# No namespace can be named "-".
urlpatterns = [
    path("", views.flow_list, name="list"),
    path("-/templates/", views.template_list, name="templates"),
    path("-/templates/<str:namespace>/<str:name>/", views.template_detail, name="template"),
    path("-/templates/<str:namespace>/<str:name>/run/", views.run_once, name="run"),
    path("-/templates/<str:namespace>/<str:name>/delete/", views.template_delete, name="delete-template"),
    path("<str:namespace>/<str:name>/", views.flow_detail, name="detail"),
    path("<str:namespace>/<str:name>/delete/", views.flow_delete, name="delete"),
]
