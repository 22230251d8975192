"""Who there is, what they may do, and how they get in.

    from cluster import access
    access.require(actor, "create", resource, namespace)

`authorizer` decides, from the table in `roles`, or asks who decides in place of it; `accounts`, `tokens` and `logins`
say who somebody is; `audit` keeps what they did.
"""

from __future__ import annotations

from cluster.access.authorizer import BOOTSTRAPPERS as BOOTSTRAPPERS
from cluster.access.authorizer import CONSOLE as CONSOLE
from cluster.access.authorizer import MASTERS as MASTERS
from cluster.access.authorizer import SYSTEM as SYSTEM
from cluster.access.authorizer import Actor as Actor
from cluster.access.authorizer import account_of as account_of
from cluster.access.authorizer import allowed as allowed
from cluster.access.authorizer import decides_elsewhere as decides_elsewhere
from cluster.access.authorizer import delegate as delegate
from cluster.access.authorizer import for_user as for_user
from cluster.access.authorizer import generation as generation
from cluster.access.authorizer import grants as grants
from cluster.access.authorizer import is_system as is_system
from cluster.access.authorizer import namespaces as namespaces
from cluster.access.authorizer import node_of as node_of
from cluster.access.authorizer import of as of
from cluster.access.authorizer import refuse as refuse
from cluster.access.authorizer import remedy as remedy
from cluster.access.authorizer import renew as renew
from cluster.access.authorizer import require as require
from cluster.access.authorizer import scope as scope
from cluster.access.authorizer import somewhere as somewhere
from cluster.access.roles import ALL as ALL
from cluster.access.roles import EVERYWHERE as EVERYWHERE
from cluster.access.roles import Everywhere as Everywhere
from cluster.access.roles import Role as Role
