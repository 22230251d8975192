"""The addresses of the queue pages."""

from __future__ import annotations

from django.urls import path, re_path

from queues import views
from queues.scheduler import views as scheduler

app_name = "queues"
# A queue's name cannot hold a slash, but it can be "new": the word stands below a path of its own.
urlpatterns = [
    path("", views.show_queues, name="list"),
    path("-/new/", views.new_queue, name="new"),
    path("-/scheduler/", scheduler.show_scheduler, name="scheduler"),
    path("-/scheduler/decisions/", scheduler.show_decisions, name="decisions"),
    path("-/scheduler/reset/", scheduler.reset_scheduler, name="reset-scheduler"),
    path("<str:name>/", views.show_queue, name="detail"),
    path("<str:name>/edit/", views.edit_queue, name="edit"),
    re_path(r"^(?P<name>[^/]+)/(?P<state>open|close)/$", views.set_state, name="set-state"),
    path("<str:name>/delete/", views.delete_queue, name="delete"),
]
