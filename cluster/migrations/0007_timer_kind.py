from django.db import migrations, models

# What stood before the key's colon, and the kind that it was: everything else was a group to be tried again.
KINDS = {
    'jobs': {'ttl': 'ttl', 'more': 'more'},
    'garbage': {'owner': 'owner', 'more': 'more'},
    'namespaces': {'gone': 'gone', 'namespace': 'look'},
    'quotas': {'': 'count'},
    'budgets': {'': 'count'},
    'definitions': {'': 'ending'},
    'queues': {'flush': 'flush'},
    'scheduler': {'cycle': 'cycle'},
    'nodes': {'look': 'look'},
}


def part(apps, editor):
    """Part each key into its kind and what is left of it."""
    timers = apps.get_model('cluster', 'Timer').objects.using(editor.connection.alias)
    for timer in timers.order_by('due'):
        kinds = KINDS.get(timer.cursor.partition('/')[0], {})
        before, colon, rest = timer.key.partition(':')
        if timer.key in kinds:
            timer.kind, timer.key = kinds[timer.key], ''
        elif colon and before in kinds:
            timer.kind, timer.key = kinds[before], rest
        elif colon and before == 'gone':
            timer.kind, timer.key = 'retry', rest
        else:
            timer.kind = kinds.get('', 'retry')
        timer.save()


def join(apps, editor):
    """Put kinds back before the keys; what was only to be tried again is left out where two would be one."""
    timers = apps.get_model('cluster', 'Timer').objects.using(editor.connection.alias)
    timers.filter(kind='retry').delete()
    for timer in timers.all():
        kinds = KINDS.get(timer.cursor.partition('/')[0], {})
        before = next((before for before, kind in kinds.items() if kind == timer.kind), '')
        timer.key = f'{before}:{timer.key}' if before and timer.key else before or timer.key
        timer.save()


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0006_ownership'),
    ]

    operations = [
        migrations.AddField(
            model_name='timer',
            name='kind',
            field=models.CharField(default='', max_length=40),
            preserve_default=False,
        ),
        migrations.RemoveConstraint(
            model_name='timer',
            name='timer_key',
        ),
        migrations.RunPython(part, join),
        migrations.AddConstraint(
            model_name='timer',
            constraint=models.UniqueConstraint(fields=('cursor', 'kind', 'key'), name='timer_key'),
        ),
    ]
