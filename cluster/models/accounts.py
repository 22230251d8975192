"""Tables beside Django's users and groups: roles, login links, failed logins and the audit."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

ROLES = [(role, role) for role in ("viewer", "submitter", "operator", "administrator")]


def this_cluster() -> str:
    """Return how a role binding names the cluster of this process."""
    name: str = settings.ROLES_OF
    return name


class BindingsHere(models.Manager["RoleBinding"]):
    """The role bindings of the cluster of this process."""

    def get_queryset(self) -> models.QuerySet[RoleBinding]:
        return super().get_queryset().filter(cluster=this_cluster())


class RoleBinding(models.Model):
    """One role of one user, one group or one service account, in one namespace or ("*") everywhere.

    A service account is named by its own namespace and name, as in Kubernetes: it need not exist.
    `cluster` is where it counts, as the name of that cluster's state directory; "" is the cluster that
    keeps the accounts, which is the only one unless there are several.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="role_bindings"
    )
    group = models.ForeignKey(Group, models.CASCADE, null=True, blank=True, related_name="role_bindings")
    account_namespace = models.CharField(max_length=63, blank=True, default="")
    account = models.CharField(max_length=253, blank=True, default="")
    namespace = models.CharField(max_length=63)
    role = models.CharField(max_length=16, choices=ROLES)
    cluster = models.CharField(max_length=80, blank=True, default="")

    objects = BindingsHere()
    of_all: models.Manager[RoleBinding] = models.Manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, group__isnull=True, account="")
                | Q(user__isnull=True, group__isnull=False, account="")
                | Q(user__isnull=True, group__isnull=True) & ~Q(account=""),
                name="rolebinding_one_subject",
            ),
            models.UniqueConstraint(
                fields=["user", "cluster", "namespace"], condition=Q(user__isnull=False), name="rolebinding_user"
            ),
            models.UniqueConstraint(
                fields=["group", "cluster", "namespace"], condition=Q(group__isnull=False), name="rolebinding_group"
            ),
            models.UniqueConstraint(
                fields=["account_namespace", "account", "cluster", "namespace"],
                condition=~Q(account=""),
                name="rolebinding_account",
            ),
        ]

    def __str__(self) -> str:
        subject = f"service account {self.account_namespace}/{self.account}"
        if not self.account:
            subject = str(self.user) if self.user_id is not None else f"group {self.group}"
        return f"{subject} is {self.role} in {self.namespace}"


class Identity(models.Model):
    """An account of an OpenID Connect provider, by which a user logs in; a subject is never given to two people."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_subject"),
            models.UniqueConstraint(fields=["user", "issuer"], name="identity_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.subject} at {self.issuer}"


class LoginLink(models.Model):
    """A one-time link. Only the SHA-256 of its token is kept; times are epoch milliseconds."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="login_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires = models.BigIntegerField()
    used = models.BigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"login link of {self.user}"


class LoginFailure(models.Model):
    """A failed login: the name that was tried and where from (an address or a known browser)."""

    name = models.CharField(max_length=150)
    source = models.CharField(max_length=64)
    at = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["name", "at"], name="loginfailure_name"),
            models.Index(fields=["source", "at"], name="loginfailure_source"),
            models.Index(fields=["at"], name="loginfailure_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.source}"


class AuditEntry(models.Model):
    """Who did what to which object, when, and what came of it.

    `outcome` is "done", "denied" (no right) or "refused" (any other error). `count` is more than 1 when one row stands
    for a whole batch; `changes` is a list of {path, old, new} without secret values.
    """

    at = models.BigIntegerField()
    actor = models.CharField(max_length=350)  # a service account's name is long
    verb = models.CharField(max_length=32)
    resource = models.CharField(max_length=128)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253, blank=True)
    uid = models.CharField(max_length=36, blank=True)
    revision = models.BigIntegerField(null=True, blank=True)
    outcome = models.CharField(max_length=8)
    message = models.TextField(blank=True)
    changes = models.JSONField(default=list, blank=True)
    count = models.IntegerField(default=1)

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="audit_at"),
            models.Index(fields=["actor", "at"], name="audit_actor"),
            models.Index(fields=["namespace", "at"], name="audit_namespace"),
            models.Index(fields=["name", "namespace", "resource"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.resource} {self.namespace}/{self.name}: {self.outcome}"
