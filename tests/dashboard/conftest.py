from tests.reading import reads

__all__ = ["reads"]
