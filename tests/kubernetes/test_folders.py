"""What the folders of deploy/kubernetes say, looked at without a cluster: each name leads somewhere, and nothing may more than it needs."""

import os
import re
import subprocess
from urllib.parse import urlsplit

import pytest
import redis
import yaml

from proof.harness import services
from proof.harness.ports import free_port
from proof.kubernetes.cluster import DEPLOY, PROGRAMS
from volcano_ui import valkey
from volcano_ui.management.commands.up import Command

ONE_POD = ("base", "beside", "in-place")
FOLDERS = (*ONE_POD, "several-pods")
WEBHOOK_PORT = 9443  # beside 8000
WORKLOADS = ("Deployment", "StatefulSet")


@pytest.fixture(scope="module", params=FOLDERS)
def objects(request):
    """What a folder puts into a cluster."""
    return rendered(request.param)


@pytest.fixture(scope="module")
def several():
    return rendered("several-pods")


def rendered(folder):
    command = [PROGRAMS["kubectl"], "kustomize", DEPLOY / folder]
    return list(yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True).stdout))


def of(objects, *kinds):
    return [each for each in objects if each["kind"] in kinds]


def templates(objects):
    """The pods' templates by the name of what makes them."""
    return {each["metadata"]["name"]: each["spec"]["template"] for each in of(objects, *WORKLOADS)}


def selected(objects, labels):
    """The names of those whose pods have the labels."""
    found = {name: template["metadata"]["labels"] for name, template in templates(objects).items()}
    return {name for name, own in found.items() if labels.items() <= own.items()}


def containers(objects):
    return [(name, each) for name, template in templates(objects).items() for each in template["spec"]["containers"]]


def ports_of(objects, workload):
    """The ports of pods: by their names, and that of webhooks, which `up` opens where it is told that there are some."""
    named = {port["name"] for name, each in containers(objects) if name == workload for port in each["ports"]}
    (settings,) = of(objects, "ConfigMap")
    has_webhooks = workload in ("volcano-ui", "web") and "VOLCANO_UI_WEBHOOKS" in settings["data"]
    return named | ({WEBHOOK_PORT} if has_webhooks else set())


def test_selectors_find_pods(objects):
    for each in of(objects, "Service", "PodDisruptionBudget", "NetworkPolicy"):
        labels = each["spec"].get("selector") or each["spec"]["podSelector"]
        assert selected(objects, labels.get("matchLabels", labels)), (each["kind"], each["metadata"]["name"])
    for each in of(objects, *WORKLOADS):
        assert selected(objects, each["spec"]["selector"]["matchLabels"]) == {each["metadata"]["name"]}
        for spread in each["spec"]["template"]["spec"].get("topologySpreadConstraints", ()):
            assert selected(objects, spread["labelSelector"]["matchLabels"]) == {each["metadata"]["name"]}


def test_services_lead_to_ports_that_are_there_and_only_where_pages_are(objects):
    arguments = {name: each.get("args") for name, each in containers(objects)}
    for each in of(objects, "Service"):
        behind = selected(objects, each["spec"]["selector"])
        for port in each["spec"]["ports"]:
            assert all(port["targetPort"] in ports_of(objects, name) for name in behind)
        if each["metadata"]["name"].startswith("volcano-ui"):
            assert all(arguments[name] in (["up"], ["up", "--only=web"]) for name in behind)


def test_config_maps_and_secrets_that_are_named_are_made(objects):
    maps = {each["metadata"]["name"] for each in of(objects, "ConfigMap")}
    made = secrets()
    for name, each in containers(objects):
        for source in each.get("envFrom", ()):
            if "configMapRef" in source:
                assert source["configMapRef"]["name"] in maps, name
            else:
                assert source["secretRef"]["name"] == "servers"
        for variable in each.get("env", ()):
            if key := variable.get("valueFrom", {}).get("secretKeyRef"):
                assert (key["name"], key["key"] in made) == ("servers", True), name


def secrets():
    """What the README's command puts into the Secret `servers`."""
    text = (DEPLOY / "README.md").read_text()
    (command,) = re.findall(r"create secret generic servers \\\n((?:.+\\\n)*.+)", text)
    return dict(re.findall(r"--from-literal=([A-Z_]+)=(\S+)", command))


def test_secret_of_the_readme_names_the_servers_that_are_brought_along(several):
    made = secrets()
    assert made.keys() >= {"DATABASE_URL", "VOLCANO_UI_REDIS_URL", "VOLCANO_UI_SECRET_KEY"}
    ports = {each["metadata"]["name"]: each["spec"]["ports"][0]["port"] for each in of(several, "Service")}
    for name, scheme in (("DATABASE_URL", "postgresql"), ("VOLCANO_UI_REDIS_URL", "redis")):
        url = urlsplit(made[name])
        assert url.scheme == scheme
        assert ports[url.hostname] == url.port
    (postgres,) = [each for name, each in containers(several) if name == "postgres"]
    values = {each["name"]: each.get("value") for each in postgres["env"]}
    url = urlsplit(made["DATABASE_URL"])
    assert (values["POSTGRES_USER"], values["POSTGRES_DB"]) == (url.username, url.path[1:])
    assert url.password == made["POSTGRES_PASSWORD"]
    assert urlsplit(made["VOLCANO_UI_REDIS_URL"]).password == made["VALKEY_PASSWORD"]


def test_pods_are_what_the_level_restricted_wants_and_write_to_volumes_alone(objects):
    made = {each["metadata"]["name"] for each in of(objects, "PersistentVolumeClaim")}
    for workload in of(objects, *WORKLOADS):
        name, pod = workload["metadata"]["name"], workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", name
        assert {each.get("persistentVolumeClaim", {}).get("claimName") for each in pod["volumes"]} <= {None, *made}
        claims = [each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", ())]
        volumes = {*claims, *(each["name"] for each in pod["volumes"])}
        for each in pod["containers"]:
            assert each["securityContext"] == {
                "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            }, name  # fmt: skip
            assert each["resources"]["requests"].keys() == {"cpu", "memory"}, name
            assert "memory" in each["resources"]["limits"], name
            assert "readinessProbe" in each, name
            assert {mount["name"] for mount in each["volumeMounts"]} <= volumes


def test_token_of_the_account_is_where_the_api_server_is_asked(objects):
    for name, template in templates(objects).items():
        is_ours = template["metadata"]["labels"]["app.kubernetes.io/name"] == "volcano-ui"
        assert (template["spec"].get("serviceAccountName") == "volcano-ui") == is_ours, name
        assert template["spec"].get("automountServiceAccountToken", True) == is_ours, name


def test_every_pod_has_a_policy_in_each_direction(objects):
    for direction in ("Ingress", "Egress"):
        policies = [each for each in of(objects, "NetworkPolicy") if direction in each["spec"]["policyTypes"]]
        covered = [selected(objects, each["spec"]["podSelector"]["matchLabels"]) for each in policies]
        assert set().union(*covered) == set(templates(objects)), direction


# Who reaches which port; from "" are those outside.
REACHED = {("", "web", "http"), ("", "web", WEBHOOK_PORT)} | {
    (source, server, server) for source in ("web", "works") for server in ("postgres", "valkey")
}


def test_who_reaches_whom(several):
    found = set()
    for policy in of(several, "NetworkPolicy"):
        for name in selected(several, policy["spec"]["podSelector"]["matchLabels"]):
            for rule in policy["spec"].get("ingress", ()):
                peers = [each["podSelector"]["matchLabels"] for each in rule.get("from", ())]
                sources = set().union(*(selected(several, each) for each in peers)) if peers else {""}
                found |= {(source, name, port["port"]) for source in sources for port in rule["ports"]}
    assert found == REACHED
    assert all(port in ports_of(several, name) for _, name, port in REACHED)


def test_what_is_reached_may_be_asked_for(several):
    ports = {each["name"]: each["containerPort"] for _, one in containers(several) for each in one["ports"]}
    (outward,) = [each for each in of(several, "NetworkPolicy") if each["metadata"]["name"] == "outward"]
    assert selected(several, outward["spec"]["podSelector"]["matchLabels"]) == {"web", "works"}
    listed = [port for rule in outward["spec"]["egress"] for port in rule["ports"]]
    allowed = {(port.get("protocol", "TCP"), port["port"]) for port in listed}
    assert allowed >= {("TCP", ports["postgres"]), ("TCP", ports["valkey"]), ("TCP", 443), ("UDP", 53)}


def test_of_each_part_one_pod_stays(several):
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in of(several, "Deployment")}
    for each in of(several, "PodDisruptionBudget"):
        (name,) = selected(several, each["spec"]["selector"]["matchLabels"])
        assert 0 < each["spec"]["minAvailable"] < replicas.pop(name), "nodes can be drained"
    assert not replicas, "each has a budget"


def test_arguments_are_those_of_the_command(objects):
    parser = Command().create_parser("volcano-ui", "up")
    for name, each in containers(objects):
        if each["image"].startswith("volcano-ui"):
            command, *options = each["args"]
            assert command == "up"
            assert parser.parse_args(options).only == {"volcano-ui": None}.get(name, name)


def test_valkey_takes_its_arguments_and_asks_for_the_password(several, tmp_path):
    """A server of this machine, with the command line of the manifest."""
    (container,) = [each for name, each in containers(several) if name == "valkey"]
    port = free_port()
    assert not [argument for argument in container["args"] if "$(" in argument], "nobody sees it"
    own = f"{valkey.find_server()} - --port {port} --bind 127.0.0.1"
    script = container["args"][0].replace("valkey-server -", own).replace("/tmp", str(tmp_path))
    command = [*container["command"], script]
    with services.running(command, env={"PATH": os.environ["PATH"], "VALKEY_PASSWORD": "secret"}):
        with redis.Redis(port=port, password="secret") as client:
            services.wait_until(client.ping, redis.ConnectionError)
        with redis.Redis(port=port) as client, pytest.raises(redis.AuthenticationError):
            client.ping()


@pytest.mark.parametrize("folder", ONE_POD)
def test_components_fit_each_folder(folder, tmp_path):
    """As several-pods says: another line there, and people may change something else."""
    above = os.path.relpath(DEPLOY, tmp_path)
    kustomization = yaml.safe_load((DEPLOY / "several-pods" / "kustomization.yaml").read_text())
    kustomization["resources"] = [f"{above}/{folder}"]
    kustomization["components"] = [each.replace("..", above) for each in kustomization["components"]]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    found = rendered(tmp_path)
    assert {each["metadata"]["name"] for each in of(found, *WORKLOADS)} == {"web", "works", "postgres", "valkey"}
    (settings,) = of(found, "ConfigMap")
    (usual,) = of(rendered(folder), "ConfigMap")
    assert settings["data"] == usual["data"]
