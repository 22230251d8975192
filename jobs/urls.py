"""The addresses of the job pages."""

from __future__ import annotations

from django.urls import path

from jobs.pages import views
from jobs.parameterized.views import stored_form, template_form, template_new

app_name = "jobs"
urlpatterns = [
    path("", views.job_list, name="list"),
    path("new/", views.job_new, name="new"),
    path("validate/", views.job_validate, name="validate"),
    path("samples/<slug:sample>/run/", views.run_sample, name="run-sample"),
    # No namespace is called "-": the word stands where one would.
    path("-/templates/", template_new, name="template-new"),
    path("-/templates/<slug:slug>/", template_form, name="template"),
    path("-/templates/<str:namespace>/<str:name>/", stored_form, name="template-kept"),
    path("<str:namespace>/<str:name>/", views.job_detail, name="detail"),
    path("<str:namespace>/<str:name>/delete/", views.job_delete, name="delete"),
    path("<str:namespace>/<str:name>/suspend/", views.job_command, {"verb": "suspend"}, name="suspend"),
    path("<str:namespace>/<str:name>/resume/", views.job_command, {"verb": "resume"}, name="resume"),
    path("<str:namespace>/<str:name>/yaml/", views.job_yaml, name="yaml"),
    path("<str:namespace>/<str:name>/log/", views.job_log, name="log"),
]
