"""The objects of the stand-in API server: a table with versions, selectors and a journal for watches."""
import copy
import datetime
import threading
import uuid


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class ApiError(Exception):
    """Becomes a Status object, as Kubernetes answers."""

    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


def matches(labels, selector):
    """Whether the labels fulfil all of "a=b,c!=d,e"."""
    for term in filter(None, selector.split(",")):
        if "!=" in term:
            key, value = term.split("!=", 1)
            if labels.get(key) == value:
                return False
        elif "=" in term:
            key, value = term.replace("==", "=").split("=", 1)
            if labels.get(key) != value:
                return False
        elif term not in labels:
            return False
    return True


def merge(target, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


class Objects:
    """All objects by (resource, namespace, name). Hold `lock` around changes of an object, and call
    `changed` afterwards."""

    def __init__(self):
        self.lock = threading.RLock()
        self.table = {}
        self.version = 1
        self.journal = []  # (version, type, resource, namespace, copy of the object)
        self.news = threading.Condition(self.lock)

    def note(self, kind, resource, thing):
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.journal.append((self.version, kind, resource, thing["metadata"]["namespace"],
                             copy.deepcopy(thing)))
        self.news.notify_all()

    def add(self, resource, namespace, thing):
        with self.lock:
            meta = thing.setdefault("metadata", {})
            if "name" not in meta:
                meta["name"] = meta.pop("generateName") + uuid.uuid4().hex[:5]
            key = (resource, namespace, meta["name"])
            if key in self.table:
                raise ApiError(409, "AlreadyExists", f'{resource} "{meta["name"]}" already exists')
            meta.update(namespace=namespace, uid=str(uuid.uuid4()), creationTimestamp=now())
            self.table[key] = thing
            self.note("ADDED", resource, thing)
            return thing

    def changed(self, resource, thing):
        with self.lock:
            self.note("MODIFIED", resource, thing)

    def remove(self, resource, thing):
        with self.lock:
            meta = thing["metadata"]
            if self.table.pop((resource, meta["namespace"], meta["name"]), None) is not None:
                self.note("DELETED", resource, thing)

    def get(self, resource, namespace, name):
        with self.lock:
            try:
                return self.table[(resource, namespace, name)]
            except KeyError:
                raise ApiError(404, "NotFound", f'{resource} "{name}" not found') from None

    def list(self, resource, namespace=None, selector=""):
        with self.lock:
            return [thing for (kind, place, _), thing in self.table.items()
                    if kind == resource and namespace in (None, place) and
                    matches(thing["metadata"].get("labels", {}), selector)]
