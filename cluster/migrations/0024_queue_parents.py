"""Index queues by the one above them, by which admission finds whether a queue has others below it."""

import msgspec
from django.db import migrations

from kube.resources import QUEUES


def index(apps, editor):
    with editor.connection.cursor() as cursor:
        cursor.execute(
            'SELECT o.key, c.body FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision WHERE o.resource = %s',
            [QUEUES.id],
        )
        found = [(QUEUES.index(msgspec.json.decode(bytes(body))).queue, key) for key, body in cursor.fetchall()]
        cursor.executemany('UPDATE cluster_object SET queue = %s WHERE key = %s', found)


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0023_commands_seen'),
    ]

    operations = [
        migrations.RunPython(index, migrations.RunPython.noop),
    ]
