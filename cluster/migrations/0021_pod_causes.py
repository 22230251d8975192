"""Index pods by the cause for which they do not run, where a container's own reason stood until their next status.

By the rule that is asked at each write, so that what is found is what is shown. Pods that have ended and have no reason are passed over.
"""

import msgspec
from django.db import migrations

from kube.resources import PODS

BATCH = 500
ENDED = ('Succeeded', 'Failed')


def index(apps, editor):
    with editor.connection.cursor() as cursor:
        after = f'{PODS.id}/'
        while rows := _next(cursor, after):
            after = rows[-1][0]
            found = [(PODS.index(msgspec.json.decode(bytes(body))).trouble, key, was) for key, was, body in rows]
            changed = [(cause, key) for cause, key, was in found if cause != was]
            if changed:
                cursor.executemany('UPDATE cluster_object SET trouble = %s WHERE key = %s', changed)


def _next(cursor, after):
    cursor.execute(
        'SELECT o.key, o.trouble, c.body FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision'
        # In the order of keys from one to the other; by the kind databases would sort all pods for each batch.
        " WHERE o.key > %s AND o.key < %s AND (NOT (o.trouble = '') OR NOT (o.phase IN (%s, %s))) ORDER BY o.key LIMIT %s",
        [after, f'{PODS.id}0', *ENDED, BATCH],  # 0 follows the slash
    )
    return cursor.fetchall()


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0020_node_tokens'),
    ]

    operations = [
        migrations.RunPython(index, migrations.RunPython.noop),
    ]
