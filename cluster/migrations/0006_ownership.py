"""Write the table of owners anew: it kept references that had been taken away, and lost others."""

import json

from django.db import migrations, models

BATCH = 500
MARK = b'"ownerReferences"'


def rebuild(apps, editor):
    with editor.connection.cursor() as cursor:
        cursor.execute('DELETE FROM cluster_ownership')
        after = ''
        while rows := _objects(cursor, after):
            after = rows[-1][0]
            found = [(key, uid) for key, resource, owner, body in rows for uid in _beyond_controller(resource, owner, body)]
            if found:
                cursor.executemany('INSERT INTO cluster_ownership (key, owner) VALUES (%s, %s)', found)


def _objects(cursor, after):
    cursor.execute(
        'SELECT o.key, o.resource, o.owner, c.body FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision'
        ' WHERE o.key > %s ORDER BY o.key LIMIT %s',
        [after, BATCH],
    )
    return cursor.fetchall()


def _beyond_controller(resource, owner, body):
    body = bytes(body)
    if MARK not in body:
        return []
    uids = {reference.get('uid') for reference in json.loads(body)['metadata'].get('ownerReferences') or ()}
    # An event's column says what it is about.
    return sorted(uids - {None, '', None if resource == 'events' else owner})


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0005_key_order'),
    ]

    operations = [
        migrations.RunPython(rebuild, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='ownership',
            name='key',
            field=models.CharField(max_length=446),
        ),
        migrations.AddConstraint(
            model_name='ownership',
            constraint=models.UniqueConstraint(fields=('key', 'owner'), name='ownership_once'),
        ),
    ]
