"""Kubernetes' API accepts the manifests, and they match the portal's image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

PROJECT = Path(__file__).parents[3]
FOLDER = PROJECT / "deploy" / "kubernetes"
STRING, COUNT, FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
QUANTITY = {"type": "string", "pattern": r"^\d+(\.\d+)?(m|Ki|Mi|Gi)?$"}


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with no other fields, so that a misspelt one is an error."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def several(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


def mapping(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value, "minProperties": 1}


# The fields that the manifests use, as in the API reference of Kubernetes 1.30.
LABELS = mapping(STRING)
SELECTOR = fields("matchLabels", matchLabels=LABELS)
METADATA = fields("name", name=NAME, labels=LABELS, annotations=LABELS)
PROBE = fields(
    "httpGet",
    httpGet=fields("path", "port", path=STRING, port=STRING),
    periodSeconds=COUNT,
    timeoutSeconds=COUNT,
    failureThreshold=COUNT,
)
REFERENCE = fields("name", name=NAME)
COMMAND = fields("command", command=several(STRING))
CONTAINER = fields(
    *("name", "image", "command", "envFrom", "securityContext", "resources"),
    name=NAME,
    image=STRING,
    command=several(STRING),
    ports=several(fields("name", "containerPort", name=NAME, containerPort=COUNT)),
    envFrom=several(fields(configMapRef=REFERENCE, secretRef=REFERENCE)),
    startupProbe=PROBE,
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    lifecycle=fields("preStop", preStop=fields("exec", exec=COMMAND)),
    securityContext=fields(
        *("allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"),
        allowPrivilegeEscalation={"const": False},
        readOnlyRootFilesystem={"const": True},
        capabilities=fields("drop", drop={"const": ["ALL"]})
    ),
    resources=fields(
        "requests", "limits",
        requests=fields("cpu", "memory", cpu=QUANTITY, memory=QUANTITY),
        limits=fields("memory", memory=QUANTITY)
    ),
    volumeMounts=several(fields("name", "mountPath", name=NAME, mountPath=STRING)),
)  # fmt: skip
POD = fields(
    *("containers", "securityContext", "volumes"),
    restartPolicy={"const": "Never"},
    terminationGracePeriodSeconds=COUNT,
    automountServiceAccountToken={"const": False},
    securityContext=fields(
        *("runAsNonRoot", "runAsUser", "seccompProfile"),
        runAsNonRoot={"const": True},
        runAsUser=COUNT,
        runAsGroup=COUNT,
        fsGroup=COUNT,
        seccompProfile=fields("type", type={"const": "RuntimeDefault"}),
    ),
    topologySpreadConstraints=several(
        fields(
            *("maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector"),
            maxSkew=COUNT,
            topologyKey=STRING,
            whenUnsatisfiable={"enum": ["ScheduleAnyway", "DoNotSchedule"]},
            labelSelector=SELECTOR,
        )
    ),
    containers=several(CONTAINER),
    volumes=several(
        fields("name", "emptyDir", name=NAME, emptyDir=fields("sizeLimit", sizeLimit=QUANTITY))
    ),
)
TEMPLATE = fields("metadata", "spec", metadata=fields("labels", labels=LABELS), spec=POD)
TARGET = fields(
    "apiVersion", "kind", "name", apiVersion=STRING, kind={"const": "Deployment"}, name=NAME
)
METRIC = fields(
    "type", "resource",
    type={"const": "Resource"},
    resource=fields(
        "name", "target",
        name={"enum": ["cpu", "memory"]},
        target=fields(
            "type", "averageUtilization",
            type={"const": "Utilization"},
            averageUtilization={"type": "integer", "minimum": 1, "maximum": 100}
        )
    ),
)  # fmt: skip
PATH = fields(
    "path", "pathType", "backend",
    path=STRING,
    pathType={"enum": ["Prefix", "Exact"]},
    backend=fields(
        "service", service=fields("name", "port", name=NAME, port=fields("name", name=NAME))
    ),
)  # fmt: skip
SPECS = {
    ("apps/v1", "Deployment"): fields(
        *("replicas", "selector", "strategy", "template"),
        replicas=COUNT,
        selector=SELECTOR,
        strategy=fields(
            "rollingUpdate",
            rollingUpdate=fields(
                "maxUnavailable", "maxSurge", maxUnavailable=COUNT, maxSurge=COUNT
            )
        ),
        template=TEMPLATE
    ),
    ("batch/v1", "Job"): fields("template", backoffLimit=COUNT, template=TEMPLATE),
    ("v1", "Service"): fields(
        "selector", "ports",
        selector=LABELS,
        ports=several(
            fields("name", "port", "targetPort", name=NAME, port=COUNT, targetPort=STRING)
        )
    ),
    ("policy/v1", "PodDisruptionBudget"): fields(
        "minAvailable", "selector", minAvailable=COUNT, selector=SELECTOR
    ),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): fields(
        *("scaleTargetRef", "minReplicas", "maxReplicas", "metrics"),
        scaleTargetRef=TARGET,
        minReplicas=COUNT,
        maxReplicas=COUNT,
        metrics=several(METRIC)
    ),
    ("networking.k8s.io/v1", "Ingress"): fields(
        "rules",
        ingressClassName=NAME,
        tls=several(fields("hosts", "secretName", hosts=several(STRING), secretName=NAME)),
        rules=several(
            fields("host", "http", host=STRING, http=fields("paths", paths=several(PATH)))
        )
    ),
}  # fmt: skip


def manifests() -> list[dict[str, Any]]:
    return [
        one
        for path in sorted(FOLDER.glob("*.yaml"))
        for one in yaml.safe_load_all(path.read_text())
    ]


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {
        manifest["metadata"]["name"]: manifest
        for manifest in manifests()
        if manifest["kind"] == kind
    }


@pytest.mark.parametrize(
    "one", manifests(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_manifest_has_the_fields_of_its_kind(one: dict[str, Any]) -> None:
    head = {"apiVersion": STRING, "kind": STRING, "metadata": METADATA}
    if one["kind"] == "ConfigMap":
        schema = fields(*head, "data", **head, data=LABELS)
    else:
        schema = fields(*head, "spec", **head, spec=SPECS[one["apiVersion"], one["kind"]])
    jsonschema.validate(one, schema)


def test_a_misspelt_field_is_found() -> None:
    web = named("Deployment")["web"]
    web["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(web["spec"], SPECS["apps/v1", "Deployment"])


def test_each_deployment_has_a_budget_an_autoscaler_and_its_own_pods() -> None:
    for name, deployment in named("Deployment").items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"] == labels
        budget = named("PodDisruptionBudget")[name]["spec"]
        assert budget["selector"]["matchLabels"] == labels
        scale = named("HorizontalPodAutoscaler")[name]["spec"]
        assert scale["scaleTargetRef"]["name"] == name
        # A budget that one pod fills would block every node's maintenance.
        assert scale["minReplicas"] > budget["minAvailable"]
    assert named("Service")["web"]["spec"]["selector"] == {"app": "portal", "part": "web"}


def test_probes_use_health_addresses_of_the_portal_on_its_port() -> None:
    (web,) = named("Deployment")["web"]["spec"]["template"]["spec"]["containers"]
    assert web["ports"] == [{"name": "http", "containerPort": 8000}]
    assert web["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert web["readinessProbe"]["httpGet"]["path"] == "/health/ready"


def test_image_runs_as_the_user_of_the_manifests_and_writes_to_its_volume_only() -> None:
    text = (PROJECT / "Dockerfile").read_text()
    assert "--uid 10001" in text
    assert "\nUSER 10001:10001\n" in text
    data = named("ConfigMap")["portal"]["data"]["PORTAL_DATA_DIR"]
    assert f"PORTAL_DATA_DIR={data}" in text
    compose = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
    for name in ("web", "worker", "migrate", "backup"):
        assert compose[name]["read_only"] is True, name
        assert compose[name]["cap_drop"] == ["ALL"], name
    profiles = {name: one["profiles"] for name, one in compose.items() if "profiles" in one}
    assert profiles == {"replica": ["replica"], "backup": ["backup"]}
