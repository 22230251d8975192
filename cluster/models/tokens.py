"""Bearer tokens: how programs come in at the API."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Token(models.Model):
    """A token of one user or of one service account. Only its SHA-256 is kept; times are epoch milliseconds.

    `account_uid` makes the tokens of a service account that was deleted
    worthless, also when another of the same name is made. A token that is
    bound to a pod or a Secret ends with it. `audiences` is a list separated by
    spaces, empty for this API. `used` is when it was last seen, to some minutes.
    """

    hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="tokens"
    )
    namespace = models.CharField(max_length=63, blank=True)
    account = models.CharField(max_length=253, blank=True)
    account_uid = models.CharField(max_length=36, blank=True)
    name = models.CharField(max_length=100)
    audiences = models.CharField(max_length=1000, blank=True)
    bound_kind = models.CharField(max_length=16, blank=True)
    bound_name = models.CharField(max_length=253, blank=True)
    bound_uid = models.CharField(max_length=36, blank=True)
    created = models.BigIntegerField()
    expires = models.BigIntegerField()
    revoked = models.BigIntegerField(null=True, blank=True)
    used = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, account="") | Q(user__isnull=True) & ~Q(account=""),
                name="token_one_holder",
            )
        ]
        indexes = [
            models.Index(fields=["expires"], name="token_expires"),
            models.Index(fields=["namespace", "account"], name="token_account", condition=~Q(account="")),
        ]

    def __str__(self) -> str:
        holder = self.user if self.user_id is not None else f"{self.namespace}/{self.account}"
        return f"token {self.name} of {holder}"
