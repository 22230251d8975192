import pytest

from deploy.wheel.hatch_build import dependencies
from tests.tables import cases
from volcano_ui import assets, env


@cases("requirement, locked, expected", {
    "up to the next major version": ("redis", "redis==8.1.0 \\", "redis<9,>=8.1.0"),
    "before 1.0 the next minor one": ("uvicorn", "uvicorn==0.54.0 \\", "uvicorn<0.55,>=0.54.0"),
    "sooner if asked so": ("django~=5.2.0", "django==5.2.19 \\", "django<6,>=5.2.19,~=5.2.0"),
    "with an extra": ("celery[redis]", "celery==5.7.0 \\", "celery[redis]<6,>=5.7.0"),
    "another spelling": ("PyYAML", "pyyaml==6.0.3 \\", "PyYAML<7,>=6.0.3"),
})  # fmt: skip
def test_dependencies_begin_at_the_lock(requirement, locked, expected):
    lock = f"# made by pip-compile\n{locked}\n    --hash=sha256:00\n    # via -r requirements.in\n"
    assert dependencies(f"# What it runs on.\n\n{requirement}\n", lock) == [expected]
    with pytest.raises(KeyError, match="redis"):
        dependencies("redis", "celery==5.7.0 \\")


@cases("is_clone, data_home, state, command", {
    "clone": (True, "/xdg", env.PROJECT / "data", "make up PORT=9000 API_PORT=9443"),
    "XDG": (False, "/xdg", "/xdg/volcano-ui", "volcano-ui up --port=9000 --api-port=9443"),
    "home": (False, "", "~/.local/share/volcano-ui", "volcano-ui up --port=9000 --api-port=9443"),
})  # fmt: skip
def test_an_installation_has_a_state_directory_and_commands_of_its_own(
    monkeypatch, is_clone, data_home, state, command
):
    monkeypatch.setattr(env, "IS_CLONE", is_clone)
    monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert str(env.default_state_directory()) == str(state)
    assert env.up_command(PORT=9000, API_PORT=9443) == command


@pytest.mark.parametrize(("chosen", "has"), [(None, "1"), ("0", "0")], ids=["by itself", "as somebody chose"])
def test_node_trusts_the_authorities_of_the_system(monkeypatch, chosen, has):
    monkeypatch.delenv("NODE_USE_SYSTEM_CA", raising=False)
    if chosen is not None:
        monkeypatch.setenv("NODE_USE_SYSTEM_CA", chosen)
    assets._node("-e", "process.exit(process.env.NODE_USE_SYSTEM_CA === process.argv[1] ? 0 : 1)", has)
