"""Addresses of login, logout, one-time links, the OpenID Connect provider and one's own password."""

from __future__ import annotations

from django.urls import path

from dashboard.accounts import oidc, views

app_name = "accounts"
urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("login/oidc/", oidc.Begin.as_view(), name="oidc"),
    path("login/oidc/callback/", oidc.Arrival.as_view(), name="arrival"),
    path("login/oidc/connection/", oidc.Connection.as_view(), name="connection"),
    path("login/<str:token>/", views.Link.as_view(), name="link"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("password/", views.Password.as_view(), name="password_change"),
]
