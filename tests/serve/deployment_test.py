#!/usr/bin/env python3
"""What packaging/ has for clusters, containers and proxies holds together and fits the server: deployment_test.py SDX SOURCE.

Needs PyYAML; objects of Kubernetes are checked against its schemas where kubernetes-validate is installed. Both are in build/serving-venv, which
tools/clients_env.sh makes and this then runs in. Exit code 77 without PyYAML.
"""

import os
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    yaml = None
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

KUBERNETES = "1.30"  # autoscaling/v2 and policy/v1 are in all that are still kept


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


if yaml is not None:

    class Strict(yaml.SafeLoader):
        """Refuses a key that is there twice, of which YAML's readers keep the last."""

    def mapping(loader, node, deep=False):
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        check(len(keys) == len(set(keys)), "a key is there twice", node.start_mark)
        return yaml.SafeLoader.construct_mapping(loader, node, deep)

    Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, lambda loader, node: mapping(loader, node, True))


def read(folder):
    """{file: documents}"""
    return {f.relative_to(folder).as_posix(): [d for d in yaml.load_all(f.read_text(), Loader=Strict) if d is not None] for f in sorted(folder.rglob("*.yaml"))}


def containers(document):
    spec = document.get("spec", {})
    return spec.get("template", {}).get("spec", {}).get("containers", []) + spec.get("containers", [])


def has_known_flags(sdx, documents):
    known = set(re.findall(r"--[a-z-]+", subprocess.run([sdx, "serve", "--help"], capture_output=True, text=True, check=True).stdout))
    check({"--repository", "--host"} <= known, known)
    for document in documents:
        for container in containers(document):
            flags = {a for a in container.get("args", []) if a.startswith("--")}
            check(flags and flags <= known, document["kind"], flags - known)


def probes(document):
    for container in containers(document):
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if kind in container:
                yield container, container[kind]["httpGet"]


def fits_the_server(source, files, documents):
    """Paths and metrics are ones that the server has."""
    code = "\n".join(f.read_text(encoding="utf-8") for f in (source / "src" / "serve").rglob("*.cc") if not f.name.endswith("_test.cc"))
    paths = set()
    for document in documents:
        for container, probe in probes(document):
            named = {p.get("name") for p in container["ports"]} | {p["containerPort"] for p in container["ports"]}
            check(probe["port"] in named, probe, named)
            paths.add(probe["path"])
    check(len(paths) == 2, paths)
    proxies = (source / "packaging" / "proxy" / "envoy.yaml").read_text()
    paths |= set(re.findall(r"http_health_check: \{path: ([^}]+)\}", proxies))
    metrics = {m["pods"]["metric"]["name"] for d in documents for m in d.get("spec", {}).get("metrics", []) if m["type"] == "Pods"}
    check(len(metrics) == 2, metrics)
    for name in paths | metrics:
        check(f'"{name}"' in code, name)
    rule = files["kubernetes/prometheus-adapter.yaml"][0]["rules"]["custom"][0]["seriesQuery"]
    check(all(name in rule for name in metrics), rule)


def refers_to_what_is_there(documents):
    by = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    check(len(by) == len(documents), "two objects of one name")
    deployment = by["Deployment", "sardonyx"]["spec"]["template"]
    labels = deployment["metadata"]["labels"]
    ports = {p["name"] for c in deployment["spec"]["containers"] for p in c["ports"]}
    for document in documents:
        if document["kind"] == "Service":
            check(document["spec"]["selector"].items() <= labels.items(), document)
            check({p["targetPort"] for p in document["spec"]["ports"]} <= ports, document)
    target = by["HorizontalPodAutoscaler", "sardonyx"]["spec"]["scaleTargetRef"]
    check((target["kind"], target["name"]) in by, target)
    claims = [v["persistentVolumeClaim"]["claimName"] for v in deployment["spec"]["volumes"] if "persistentVolumeClaim" in v]
    check(claims and all(("PersistentVolumeClaim", name) in by for name in claims), claims)
    mounted = {m["name"] for c in deployment["spec"]["containers"] for m in c["volumeMounts"]}
    check(mounted == {v["name"] for v in deployment["spec"]["volumes"]}, mounted)
    monitor = by["PodMonitor", "sardonyx"]["spec"]
    check(monitor["selector"]["matchLabels"].items() <= labels.items(), monitor)
    secrets = {v["secret"]["secretName"] for v in deployment["spec"]["volumes"] if "secret" in v}
    for endpoint in monitor["podMetricsEndpoints"]:
        check(endpoint["port"] in ports and endpoint["authorization"]["credentials"]["name"] in secrets, endpoint)
    runtime = by["ClusterServingRuntime", "sardonyx"]["spec"]
    model = by["InferenceService", "tabby"]["spec"]["predictor"]["model"]
    check(model["runtime"] == "sardonyx" and model["protocolVersion"] in runtime["protocolVersions"], model)
    check(model["modelFormat"]["name"] in {f["name"] for f in runtime["supportedModelFormats"]}, model)


def the_image_has_what_building_needs(source):
    text = (source / "packaging" / "docker" / "Dockerfile").read_text()
    stages = [stage for stage in re.split(r"^FROM ", text, flags=re.M) if stage.startswith("debian:bookworm")]
    check(len(stages) == 2, text)
    check("RUN tools/setup.sh command" in stages[0], stages[0])
    packages = (source / "tools" / "packages.txt").read_text()
    check(len(re.findall(r"^\S+ +\S*\bcommand\b", packages, flags=re.M)) > 15, packages)
    copied = re.search(r"^COPY (.+) tools/$", stages[0], flags=re.M).group(1).split()
    check({"tools/setup.sh", "tools/install.sh", "tools/packages.txt"} <= set(copied), copied)
    target = re.search(r"--target (\w+)", stages[0]).group(1)
    check(f"add_custom_target({target}" in (source / "apps" / "cli" / "CMakeLists.txt").read_text(), target)


def the_proxy_streams(source):
    text = re.sub(r"#.*", "", (source / "packaging" / "proxy" / "nginx.conf").read_text())
    check(text.count("{") == text.count("}"), "braces")
    for line in filter(None, map(str.strip, text.splitlines())):
        check(line[-1] in ";{}", "a line without an end", line)
    check("proxy_buffering off;" in text and "grpc_pass" in text, "streams")
    upstreams = set(re.findall(r"^upstream (\w+)", text, flags=re.M))
    check(set(re.findall(r"_pass \w+://(\w+)", text)) == upstreams, upstreams)


def main():
    venv = pathlib.Path(sys.argv[2]).resolve() / "build" / "serving-venv"
    if kubernetes_validate is None and (venv / "bin" / "python").exists() and pathlib.Path(sys.prefix) != venv:
        os.execv(venv / "bin" / "python", [venv / "bin" / "python", "-B", *sys.argv])
    if yaml is None:
        print("skipped, for want of PyYAML")
        return 77
    sdx, source = sys.argv[1], pathlib.Path(sys.argv[2])
    files = read(source / "packaging")
    objects = {name: [d for d in documents if "kind" in d] for name, documents in files.items()}
    documents = [d for found in objects.values() for d in found]
    for document in documents:
        check(document["apiVersion"] and document["metadata"]["name"], document)
    checked = 0
    if kubernetes_validate is not None:
        for document in (d for name, found in objects.items() if name.startswith("kubernetes/") for d in found):
            if document["apiVersion"].startswith("monitoring."):
                continue  # a resource that an operator adds
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
            checked += 1
        check(checked >= 7, checked)
    has_known_flags(sdx, [d for d in documents if containers(d)])
    fits_the_server(source, files, documents)
    refers_to_what_is_there(documents)
    the_image_has_what_building_needs(source)
    the_proxy_streams(source)
    print(f"{len(files)} files, {len(documents)} objects, {checked} of them against Kubernetes' schemas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
