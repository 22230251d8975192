"""Django's backend for SQLite, whose writers stand in line instead of asking again and again.

SQLite lets whoever finds the database locked sleep, up to 100 ms at a time, and then try again: whoever writes often
gets ahead of whoever writes now and then, who waits for a second where his turn would come in a tenth.
"""
