from django.db import migrations

from memory.fts import CreateSearchIndex


class Migration(migrations.Migration):
    # MySQL cannot roll a FULLTEXT index back, and a virtual table wants its own transaction
    atomic = False

    dependencies = [("memory", "0001_initial")]

    operations = [CreateSearchIndex()]
