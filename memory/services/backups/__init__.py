"""Backups: all databases as they were at one moment, the files beside them, and the way back.

`moment` says why what is restored fits together; `sqlite_copy` and `mysql_dump` hold the SQL.
"""
