"""A small stand-in for the API server of Kubernetes, its controllers and its kubelet, for tests: as much of them
as the real kubectl and peal need. Pods are processes of this machine, in a network of their own. It checks no rights
and no schemas. It needs the rights of root: `unshare --map-root-user` gives them to other users.

    api_server.py FOLDER [--cores N] [--image NAME=WORD,WORD...]

FOLDER gets the logs, and `kubeconfig` when the server is ready. --image names the entrypoint of an image; images
with "no-such" in their names cannot be pulled. Nobody may write in the namespace "forbidden". SIGTERM, and
the end of the program that started it, end the server and all pods.
"""
import argparse
import base64
import copy
import http.server
import json
import os
import pathlib
import signal
import threading
import time
import urllib.parse

from controllers import Controllers
from objects import ApiError, Objects, matches, merge, now
from pods import Pods, enter_own_network, is_active

# resource: (group and version, kind, short names)
RESOURCES = {
    "pods": ("v1", "Pod", ["po"]),
    "services": ("v1", "Service", ["svc"]),
    "secrets": ("v1", "Secret", []),
    "events": ("v1", "Event", ["ev"]),
    "jobs": ("batch/v1", "Job", []),
    "trainjobs": ("trainer.kubeflow.org/v1alpha1", "TrainJob", []),
}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]


def status_of(error):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": str(error), "reason": error.reason, "code": error.code}


def resource_list(version):
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [
        {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": VERBS,
         "shortNames": short}
        for name, (place, kind, short) in RESOURCES.items() if place == version]}


def group_list():
    groups = []
    for version in sorted({place for place, _, _ in RESOURCES.values() if "/" in place}):
        entry = {"groupVersion": version, "version": version.split("/")[1]}
        groups.append({"name": version.split("/")[0], "versions": [entry], "preferredVersion": entry})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def schemas(version):
    """That the server takes part in checking fields: else kubectl asks for the schemas of version 2."""
    prefix = "/api/v1" if version == "v1" else f"/apis/{version}"
    paths = {}
    for name, (place, kind, _) in RESOURCES.items():
        if place == version:
            group, _, number = version.rpartition("/")
            paths[f"{prefix}/namespaces/{{namespace}}/{name}/{{name}}"] = {"patch": {
                "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                "x-kubernetes-group-version-kind": {"group": group, "version": number, "kind": kind}}}
    return {"openapi": "3.0.0", "info": {"title": "stand-in", "version": "1"}, "paths": paths}


class Cluster:
    def __init__(self, options):
        self.folder = pathlib.Path(options.folder)
        self.objects = Objects()
        entrypoints = {name: words.split(",") for name, words in
                       (entry.split("=", 1) for entry in options.image)}
        self.pods = Pods(self.objects, self.folder, entrypoints, options.cores)
        self.controllers = Controllers(self.objects, self.pods)
        self.is_ready = threading.Event()
        self.is_ending = False

    def run_controllers(self):
        enter_own_network(self.pods.hosts)
        self.is_ready.set()
        while not self.is_ending:
            with self.objects.lock:
                self.controllers.advance()
            time.sleep(0.03)

    def create(self, resource, namespace, thing):
        if namespace == "forbidden":
            raise ApiError(403, "Forbidden", f'{resource} is forbidden: User "guest" cannot create resource '
                                             f'"{resource}" in API group "" in the namespace "forbidden"')
        if resource == "secrets":
            for key, text in thing.pop("stringData", {}).items():
                thing.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()
        return self.objects.add(resource, namespace, thing)

    def delete(self, resource, thing, options):
        if resource == "pods":
            self.pods.delete(thing, options.get("gracePeriodSeconds"))
        elif resource in ("jobs", "trainjobs"):
            thing["metadata"].setdefault("deletionTimestamp", now())
            thing["metadata"].setdefault("finalizers", ["foregroundDeletion"])
            self.objects.changed(resource, thing)
        else:
            self.objects.remove(resource, thing)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None

    def log_message(self, *_):
        pass

    # Answers.
    def send_json(self, value, code=200):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = {key: values[-1] for key, values in
                      urllib.parse.parse_qs(url.query, keep_blank_values=True).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.body = json.loads(body) if body else {}
        try:
            self.route(url.path.strip("/").split("/"))
        except ApiError as error:
            self.send_json(status_of(error), error.code)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PATCH = handle_request

    def route(self, parts):
        groups = {place for place, _, _ in RESOURCES.values()}
        if parts == ["version"]:
            return self.send_json({"major": "1", "minor": "37", "gitVersion": "v1.37.0"})
        if parts == ["api"]:
            return self.send_json({"kind": "APIVersions", "versions": ["v1"]})
        if parts == ["apis"]:
            return self.send_json(group_list())
        if parts == ["openapi", "v3"]:
            return self.send_json({"paths": {
                ("api/v1" if place == "v1" else f"apis/{place}"):
                    {"serverRelativeURL": "/openapi/v3/" + ("api/v1" if place == "v1" else f"apis/{place}")}
                for place in groups}})
        if parts[:2] == ["openapi", "v3"]:
            return self.send_json(schemas("v1" if parts[2] == "api" else "/".join(parts[3:])))
        version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if version in groups and not rest:
            return self.send_json(resource_list(version))
        namespace = None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if not rest or RESOURCES.get(rest[0], [None])[0] != version:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return self.serve(rest[0], namespace, *rest[1:])

    def serve(self, resource, namespace, name=None, part=None):
        objects = self.cluster.objects
        if part == "log":
            return self.serve_log(objects.get("pods", namespace, name))
        if self.command == "GET" and name is None:
            if self.query.get("watch") in ("1", "true"):
                return self.serve_watch(resource, namespace)
            return self.serve_list(resource, namespace)
        with objects.lock:
            if self.command == "POST":
                return self.send_json(self.cluster.create(resource, namespace, self.body), 201)
            if name is None:  # DELETE of a collection
                for thing in objects.list(resource, namespace, self.query.get("labelSelector", "")):
                    self.cluster.delete(resource, thing, self.body)
                return self.serve_list(resource, namespace)
            thing = objects.get(resource, namespace, name)
            if self.command == "DELETE":
                self.cluster.delete(resource, thing, self.body)
            if self.command == "PATCH":
                merge(thing, self.body)
                objects.changed(resource, thing)
            return self.send_json(thing)

    def serve_list(self, resource, namespace):
        objects = self.cluster.objects
        version, kind, _ = RESOURCES[resource]
        with objects.lock:
            items = copy.deepcopy(objects.list(resource, namespace, self.query.get("labelSelector", "")))
            answer = {"kind": f"{kind}List", "apiVersion": version, "items": items,
                      "metadata": {"resourceVersion": str(objects.version)}}
        field = self.query.get("fieldSelector", "")
        if field.startswith("metadata.name="):
            answer["items"] = [thing for thing in items if thing["metadata"]["name"] == field.split("=")[1]]
        self.send_json(answer)

    def serve_watch(self, resource, namespace):
        objects = self.cluster.objects
        seen = int(self.query.get("resourceVersion") or 0)
        end = time.monotonic() + float(self.query.get("timeoutSeconds", 300))
        self.begin_stream("application/json;stream=watch")
        while time.monotonic() < end and not self.cluster.is_ending:
            with objects.lock:
                objects.news.wait_for(lambda: objects.version > seen, 1)
                news = [entry for entry in objects.journal if entry[0] > seen]
                seen = objects.version
            for _, kind, changed, place, thing in news:
                if (changed == resource and namespace in (None, place) and
                        matches(thing["metadata"].get("labels", {}), self.query.get("labelSelector", ""))):
                    self.send_chunk(json.dumps({"type": kind, "object": thing}).encode() + b"\n")
        self.send_chunk(b"")

    def serve_log(self, pod):
        if self.query.get("previous") == "true":
            raise ApiError(400, "BadRequest", f'previous terminated container "{self.query.get("container")}" '
                                              f'in pod "{pod["metadata"]["name"]}" not found')
        if pod["status"]["phase"] == "Pending":
            raise ApiError(400, "BadRequest", f'container "{self.query.get("container")}" in pod '
                                              f'"{pod["metadata"]["name"]}" is waiting to start')
        follow = self.query.get("follow") == "true"
        self.begin_stream("text/plain")
        with open(self.cluster.pods.log(pod), "rb") as file:
            if "tailLines" in self.query:
                lines = file.read().splitlines(keepends=True)
                file.seek(len(b"".join(lines[:-int(self.query["tailLines"])])))
            while True:
                was_active = is_active(pod)  # before reading: the rest of an ended pod is read
                data = file.read(1 << 16)
                if data:
                    self.send_chunk(data)
                elif not follow or not was_active or self.cluster.is_ending:
                    break
                else:
                    time.sleep(0.03)
        self.send_chunk(b"")


def kubeconfig(port):
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
        "clusters": [{"name": "stand-in", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "stand-in", "user": {}}],
        "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in", "user": "stand-in",
                                                      "namespace": "default"}}]})


def end_with_parent(server, parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    server.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cores", type=float, default=8)
    parser.add_argument("--image", action="append", default=[])
    options = parser.parse_args()
    cluster = Handler.cluster = Cluster(options)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    controllers = threading.Thread(target=cluster.run_controllers)
    controllers.start()
    cluster.is_ready.wait(30)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    threading.Thread(target=end_with_parent, args=(server, os.getppid()), daemon=True).start()
    unfinished = cluster.folder / "kubeconfig.new"
    unfinished.write_text(kubeconfig(server.server_port))
    unfinished.rename(cluster.folder / "kubeconfig")
    server.serve_forever()
    cluster.is_ending = True
    controllers.join()
    cluster.pods.kill_all()


if __name__ == "__main__":
    main()
