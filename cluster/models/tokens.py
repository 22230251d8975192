"""Bearer tokens: how programs come in at the API."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Token(models.Model):
    """A token of one user, of one service account or of one node. Only its SHA-256 is kept; times are epoch milliseconds.

    `account_uid` makes the tokens of a service account that was deleted worthless, also when another of the same name
    is made. A token that is bound to a pod or a Secret ends with it. `audiences` is a list separated by spaces, empty
    for this API. `used` is when it was last seen, to some minutes.

    With one that `joins` a machine becomes the node of the name `node`, which is ANY until the first machine comes, and
    gets a token of its own. `agent` is that machine's: the id of its state directory.
    """

    ANY = "*"

    hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="tokens")
    namespace = models.CharField(max_length=63, blank=True)
    account = models.CharField(max_length=253, blank=True)
    account_uid = models.CharField(max_length=36, blank=True)
    name = models.CharField(max_length=100)
    audiences = models.CharField(max_length=1000, blank=True)
    # With defaults of the database, too: a server of the version before makes tokens that say nothing of these.
    node = models.CharField(max_length=253, blank=True, default="", db_default="")
    agent = models.CharField(max_length=36, blank=True, default="", db_default="")
    joins = models.BooleanField(default=False, db_default=False)
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
                condition=Q(user__isnull=False, account="", node="")
                | Q(user__isnull=True, node="") & ~Q(account="")
                | Q(user__isnull=True, account="") & ~Q(node=""),
                name="token_one_holder",
            )
        ]
        indexes = [
            models.Index(fields=["expires"], name="token_expires"),
            models.Index(fields=["namespace", "account"], name="token_account", condition=~Q(account="")),
            models.Index(fields=["node"], name="token_node", condition=~Q(node="")),
        ]

    def __str__(self) -> str:
        return f"token {self.name} of {self.holder}"

    @property
    def holder(self) -> str:
        """Whose it is, for people."""
        if self.user is not None:
            return self.user.username
        if self.node:
            return "one new node" if self.node == self.ANY else f"node {self.node}"
        return f"{self.namespace}/{self.account}"
