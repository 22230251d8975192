"""The addresses of the pages that belong to neither jobs nor queues."""

from __future__ import annotations

from django.urls import path

from cluster.api import backend
from dashboard.pages import connect, machines, people, releasing, views

app_name = "dashboard"
urlpatterns = [
    path("", views.show_overview, name="overview"),
    path("nodes/", views.show_nodes, name="nodes"),
    path("network/", views.show_hyper_nodes, name="hypernodes"),
    path("nodes/<str:name>/", views.show_node, name="node"),
    path("room/<str:namespace>/<str:name>/release/", releasing.release, name="release-room"),
    path("events/", views.show_events, name="events"),
    path("audit/", views.show_audit, name="audit"),
    path("theme/", views.choose_theme, name="theme"),
    path("access/", people.show, name="access"),
    path("access/users/", people.create_user, name="create-user"),
    path("access/users/<str:name>/link/", people.make_link, name="make-link"),
    path("access/users/<str:name>/active/", people.set_active, name="set-active"),
    path("access/users/<str:name>/password/", people.set_password, name="set-password"),
    path("access/roles/", people.bind_role, name="bind-role"),
    path("access/roles/remove/", people.unbind_role, name="unbind-role"),
    path("access/namespaces/", people.create_namespace, name="create-namespace"),
]
if not backend.is_mirror:  # of a cluster with an API of its own clients ask that one
    urlpatterns += [
        path("connect/", connect.show, name="connect"),
        path("nodes/-/new/", machines.add, name="add-machine"),
        path("connect/tokens/<int:number>/revoke/", connect.revoke, name="revoke-token"),
    ]
