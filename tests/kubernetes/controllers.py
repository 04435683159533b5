"""The controllers of the stand-in: pods from Indexed Jobs, and Indexed Jobs from TrainJobs."""
import collections
import copy
import math
import time

from objects import now
from pods import is_active

INDEX = "batch.kubernetes.io/job-completion-index"
PAUSE = 1.2  # before a failed pod is replaced; Kubernetes waits 10 s, and longer each time


def parse_indexes(text):
    """"0-2,5" -> {0, 1, 2, 5}"""
    indexes = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def indexes_text(indexes):
    return ",".join(str(index) for index in sorted(indexes))


def has_condition(thing, *kinds):
    return any(condition["type"] in kinds and condition["status"] == "True"
               for condition in thing.get("status", {}).get("conditions", []))


def add_condition(thing, kind, reason, message):
    thing["status"].setdefault("conditions", []).append(
        {"type": kind, "status": "True", "reason": reason, "message": message,
         "lastTransitionTime": now(), "lastProbeTime": now()})


def exit_code(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]


def verdict(job, pod):
    """The action of the first rule of the podFailurePolicy that fits: Count without one."""
    for rule in job["spec"].get("podFailurePolicy", {}).get("rules", []):
        codes = rule.get("onExitCodes")
        if codes and (exit_code(pod) in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"]
        for wanted in rule.get("onPodConditions", []):
            if has_condition(pod, wanted["type"]):
                return rule["action"]
    return "Count"


class Controllers:
    """All methods are called with the lock of the objects."""

    def __init__(self, objects, pods):
        self.objects, self.pods = objects, pods
        self.started = {}  # monotonic times, by uid of the job
        self.ended = {}    # by uid of the pod

    def advance(self):
        for train_job in self.objects.list("trainjobs"):
            self.advance_train_job(train_job)
        for job in self.objects.list("jobs"):
            self.advance_job(job)
        for pod in self.objects.list("pods"):
            self.pods.advance(pod)
            if not is_active(pod):
                self.ended.setdefault(pod["metadata"]["uid"], time.monotonic())

    def pods_of(self, job):
        return [pod for pod in self.objects.list("pods", job["metadata"]["namespace"])
                if pod["metadata"]["labels"].get("batch.kubernetes.io/job-name") == job["metadata"]["name"]]

    def advance_job(self, job):
        status = job.setdefault("status", {})
        before = copy.deepcopy(status)
        pods = self.pods_of(job)
        if "deletionTimestamp" in job["metadata"]:
            self.end_pods(pods)
            if not pods:
                self.objects.remove("jobs", job)
            return
        if has_condition(job, "Complete", "Failed"):
            self.end_pods([pod for pod in pods if is_active(pod)])
        elif job["spec"].get("suspend"):
            self.end_pods(pods)
            if not has_condition(job, "Suspended"):
                add_condition(job, "Suspended", "JobSuspended", "Job suspended")
        else:
            self.run(job, pods)
        self.count(job, pods)
        if status != before:
            self.objects.changed("jobs", job)

    def end_pods(self, pods):
        for pod in pods:
            self.pods.delete(pod)

    def count(self, job, pods):
        succeeded = {pod["metadata"]["annotations"][INDEX] for pod in pods
                     if pod["status"]["phase"] == "Succeeded"}
        job["status"].update(
            active=sum(is_active(pod) for pod in pods),
            ready=sum(pod["status"]["phase"] == "Running" for pod in pods),
            failed=sum(pod["status"]["phase"] == "Failed" for pod in pods),
            succeeded=len(succeeded), completedIndexes=indexes_text(int(index) for index in succeeded))

    def fail(self, job, reason, message):
        add_condition(job, "Failed", reason, message)
        self.end_pods([pod for pod in self.pods_of(job) if is_active(pod)])

    def complete(self, job, reason, message):
        if reason == "SuccessPolicy":
            add_condition(job, "SuccessCriteriaMet", reason, message)
        add_condition(job, "Complete", reason, message)
        job["status"]["completionTime"] = now()

    def run(self, job, pods):
        spec, status, uid = job["spec"], job["status"], job["metadata"]["uid"]
        status.setdefault("startTime", now())
        started = self.started.setdefault(uid, time.monotonic())
        if "activeDeadlineSeconds" in spec and time.monotonic() > started + spec["activeDeadlineSeconds"]:
            return self.fail(job, "DeadlineExceeded", "Job was active longer than specified deadline")
        failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
        for pod in failed:
            if verdict(job, pod) == "FailJob":
                return self.fail(job, "PodFailurePolicy",
                                 f'Container node for pod {pod["metadata"]["namespace"]}/'
                                 f'{pod["metadata"]["name"]} failed with exit code {exit_code(pod)} '
                                 "matching FailJob rule at index 1")
        counted = collections.Counter(pod["metadata"]["annotations"][INDEX] for pod in failed
                                      if verdict(job, pod) == "Count")
        per_index = spec.get("backoffLimitPerIndex")
        if counted.total() > spec.get("backoffLimit", 6 if per_index is None else math.inf):
            return self.fail(job, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if per_index is not None:
            lost = [int(index) for index, failures in counted.items() if failures > per_index]
            status["failedIndexes"] = indexes_text(lost)
            if len(lost) > spec.get("maxFailedIndexes", math.inf):
                return self.fail(job, "MaxFailedIndexesExceeded",
                                 "Job has exceeded the specified maximal number of failed indexes")
        succeeded = {int(pod["metadata"]["annotations"][INDEX]) for pod in pods
                     if pod["status"]["phase"] == "Succeeded"}
        for rule in spec.get("successPolicy", {}).get("rules", []):
            if parse_indexes(rule["succeededIndexes"]) <= succeeded:
                return self.complete(job, "SuccessPolicy", "Matched rules at index 0")
        if len(succeeded) == spec["completions"]:
            return self.complete(job, "CompletionsReached", "Reached expected number of succeeded pods")
        return self.fill(job, pods, succeeded)

    def fill(self, job, pods, succeeded):
        """Starts a pod for each index that has neither succeeded nor a pod that runs or waits."""
        spec, namespace = job["spec"], job["metadata"]["namespace"]
        for index in set(range(spec["completions"])) - succeeded:
            own = [pod for pod in pods if pod["metadata"]["annotations"][INDEX] == str(index)]
            rests = any(time.monotonic() < self.ended.get(pod["metadata"]["uid"], 0) + PAUSE for pod in own)
            if not rests and not any(is_active(pod) for pod in own):
                self.pods.create(namespace, self.pod(job, index))

    def pod(self, job, index):
        name = job["metadata"]["name"]
        template = copy.deepcopy(job["spec"]["template"])
        meta = template.setdefault("metadata", {})
        meta["generateName"] = f"{name}-{index}-"
        meta.setdefault("labels", {}).update({
            "batch.kubernetes.io/job-name": name, "job-name": name, INDEX: str(index),
            "batch.kubernetes.io/controller-uid": job["metadata"]["uid"]})
        meta.setdefault("annotations", {})[INDEX] = str(index)
        template["spec"].setdefault("hostname", f"{name}-{index}")
        for container in template["spec"]["containers"]:
            container.setdefault("env", []).append(
                {"name": "JOB_COMPLETION_INDEX",
                 "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}})
        return template

    def advance_train_job(self, train_job):
        """As Kubeflow's Trainer with its runtime for torch: one Indexed Job behind a headless Service."""
        meta = train_job["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        children = [job for job in self.objects.list("jobs", namespace)
                    if job["metadata"]["labels"].get("jobset.sigs.k8s.io/jobset-name") == name]
        if "deletionTimestamp" in meta:
            for job in children:
                job["metadata"].setdefault("deletionTimestamp", now())
            if not children:
                self.objects.remove("trainjobs", train_job)
                self.objects.remove("services", self.objects.get("services", namespace, name))
            return
        train_job.setdefault("status", {})
        if not children:
            self.make_children(train_job)
        elif not has_condition(train_job, "Complete", "Failed"):
            for condition in children[0].get("status", {}).get("conditions", []):
                if condition["type"] in ("Complete", "Failed"):
                    train_job["status"].setdefault("conditions", []).append(condition)
                    self.objects.changed("trainjobs", train_job)

    def make_children(self, train_job):
        meta, trainer = train_job["metadata"], train_job["spec"]["trainer"]
        name, nodes = meta["name"], trainer["numNodes"]
        labels = {"jobset.sigs.k8s.io/jobset-name": name}
        place = {"PET_NNODES": str(nodes), "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
                 "PET_MASTER_ADDR": f"{name}-node-0-0.{name}", "PET_MASTER_PORT": "29500"}
        env = [{"name": key, "value": value} for key, value in place.items()]
        env.append({"name": "PET_NODE_RANK", "valueFrom": {
            "fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}})
        container = {"name": "node", "image": trainer["image"], "command": trainer["command"],
                     "env": trainer.get("env", []) + env, "resources": trainer.get("resourcesPerNode", {})}
        self.objects.add("services", meta["namespace"], {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels}})
        self.objects.add("jobs", meta["namespace"], {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": f"{name}-node-0", "labels": labels},
            "spec": {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "backoffLimit": 0,
                     "template": {"metadata": {"labels": dict(labels)},
                                  "spec": {"restartPolicy": "Never", "subdomain": name,
                                           "containers": [container]}}}})
