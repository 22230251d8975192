from tests.system.conftest import _database, go, own, person, system, system_mode, watcher

__all__ = ["_database", "go", "own", "person", "system", "system_mode", "watcher"]
