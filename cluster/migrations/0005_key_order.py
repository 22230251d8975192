from django.db import migrations, models

# Lists are in bytewise order of keys, as in etcd. SQLite orders text so; PostgreSQL by the locale of the database.
ORDERS = {True: '"C"', False: '"default"'}


def order_bytewise(apps, editor):
    _order(editor, bytewise=True)


def order_by_locale(apps, editor):
    _order(editor, bytewise=False)


def _order(editor, *, bytewise):
    if editor.connection.vendor == 'postgresql':
        editor.execute(f'ALTER TABLE cluster_object ALTER COLUMN key TYPE varchar(446) COLLATE {ORDERS[bytewise]}')
        editor.execute('ANALYZE cluster_object')  # what was known of the column is void


class Migration(migrations.Migration):

    dependencies = [
        ('cluster', '0004_tokens'),
    ]

    operations = [
        migrations.RunPython(order_bytewise, order_by_locale),
        migrations.AddIndex(
            model_name='change',
            index=models.Index(fields=['resource', 'revision'], name='change_kind'),
        ),
    ]
