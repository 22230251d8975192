"""Labels, exit codes and causes of jobs as columns, and an index with all by which lists of jobs filter, count and sort."""

import json

from django.db import migrations, models

BATCH = 500
JOBS = 'jobs.batch.volcano.sh'
USUAL = ('PodsRunning', 'WaitingForPods')
# An entry of an index is of limited length on PostgreSQL, and a job's labels are not.
LISTED = 'resource, phase, created, namespace, queue, creator, owner, trouble, name, uid'
# Deep pages in these orders; what is in these indexes never changes.
ORDERED = ('queue', 'creator')


def index(apps, editor):
    columns = f'{LISTED}, terms' if editor.connection.vendor == 'sqlite' else LISTED
    editor.execute(f"CREATE INDEX object_listed ON cluster_object ({columns}) WHERE resource = '{JOBS}'")
    for column in ORDERED:
        columns = f'resource, {column}, created DESC, namespace, name, uid'
        editor.execute(f"CREATE INDEX object_by_{column} ON cluster_object ({columns}) WHERE resource = '{JOBS}'")


def unindex(apps, editor):
    for name in ('listed', *(f'by_{column}' for column in ORDERED)):
        editor.execute(f'DROP INDEX object_{name}')


def fill(apps, editor):
    living = 'SELECT o.key, c.body FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision'
    with editor.connection.cursor() as cursor:
        _fill(cursor, living, 'cluster_object', 'key')
        _fill(cursor, 'SELECT o.uid, o.object FROM cluster_record o', 'cluster_record', 'uid')


def _fill(cursor, text, table, name):
    after = ''
    while rows := _next(cursor, text, name, after):
        after = rows[-1][0]
        found = [(*_columns(json.loads(bytes(body))), key) for key, body in rows]
        cursor.executemany(f'UPDATE {table} SET trouble = %s, terms = %s WHERE {name} = %s', found)


def _next(cursor, text, name, after):
    cursor.execute(f'{text} WHERE o.resource = %s AND o.{name} > %s ORDER BY o.{name} LIMIT %s', [JOBS, after, BATCH])
    return cursor.fetchall()


def _columns(job):
    state = (job.get('status') or {}).get('state') or {}
    reason = state.get('reason') or ''
    trouble = '' if state.get('phase') == 'Completed' or reason in USUAL else reason[:64]
    terms = sorted(f'{key}={value}' for key, value in (job['metadata'].get('labels') or {}).items())
    return trouble, ''.join(f'\n{term}' for term in terms) + '\n' if terms else ''


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0010_trouble'),
    ]

    operations = [
        migrations.AddField(
            model_name='object',
            name='terms',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AddField(
            model_name='record',
            name='terms',
            field=models.TextField(db_default='', default=''),
        ),
        migrations.AddField(
            model_name='record',
            name='trouble',
            field=models.CharField(db_default='', default='', max_length=64),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunPython(index, unindex),
    ]
