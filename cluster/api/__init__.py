"""The one door: every change that somebody asks for, whichever way it comes.

    from cluster import api
    api.create(actor, resource, obj)

These are the functions of the backend that this process works with (`settings.BACKEND`, `cluster.backend`). In the
embedded cluster a change passes, in this order: the right (`rights`), the admission chain (`admission`), the store, the
audit (`audit_trail`), in one `transaction` (`creation`, `owned`, `verbs`).
"""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string

from cluster.backend import Backend

backend: Backend = import_string(settings.BACKEND)()

create = backend.create
create_each = backend.create_each
create_many = backend.create_many
create_with_owned = backend.create_with_owned
update = backend.update
patch = backend.patch
scale = backend.scale
apply = backend.apply
delete = backend.delete
delete_many = backend.delete_many
bind = backend.bind
evict = backend.evict
review = backend.review
