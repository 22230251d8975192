from tests.scheduler.conftest import golden

__all__ = ["golden"]
