"""The addresses of the job pages."""

from __future__ import annotations

from django.urls import path

from jobs.pages import editing, views
from jobs.pages.editor import views as editor
from jobs.pages.operations import views as operations
from jobs.pages.parameterized.views import stored_form, template_form, template_new
from jobs.rules import actions

app_name = "jobs"
urlpatterns = [
    path("", views.job_list, name="list"),
    path("new/", editor.job_new, name="new"),
    path("validate/", editor.job_validate, name="validate"),
    path("samples/<slug:sample>/run/", editor.run_sample, name="run-sample"),
    # No namespace can be named "-", so these never hide a job.
    path("-/kubernetes/", views.kubernetes_list, name="kubernetes"),
    path("-/operations/", operations.operations, name="operations"),
    path("-/operations/<int:number>/", operations.operation, name="operation"),
    path("-/operations/<int:number>/confirm/", operations.confirm, name="operation-confirm"),
    path("-/operations/<int:number>/stop/", operations.stop, name="operation-stop"),
    path("-/templates/", template_new, name="template-new"),
    path("-/templates/<slug:slug>/", template_form, name="template"),
    path("-/templates/<str:namespace>/<str:name>/", stored_form, name="template-kept"),
    path("<str:namespace>/<str:name>/", views.job_detail, name="detail"),
    path("<str:namespace>/<str:name>/yaml/", views.job_yaml, name="yaml"),
    path("<str:namespace>/<str:name>/log/", views.job_log, name="log"),
    path("<str:namespace>/<str:name>/edit/", editing.edit, name="edit"),
    path("<str:namespace>/<str:name>/scale/", editing.scale, name="scale"),
    *(
        path(f"<str:namespace>/<str:name>/{each.name}/", views.act, {"action": each.name}, name=each.name)
        for each in actions.CONFIRMED
    ),
]
