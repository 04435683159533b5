"""The accepted manifests in golden/ have only fields that Kubernetes and Kubeflow know, with values of their types.

Kubernetes: kubernetes-validate --strict, which has the schemas of each version. Kubeflow: the package
kubeflow-trainer-api, which Kubeflow makes from the schema of its API; it drops unknown fields, so a manifest is
read and written again. Both are in .venv, by scripts/bootstrap.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / ".venv/bin"
SKIPPED = 77  # the exit code that ctest reads as skipped
OLDEST, NEWEST = 31, 37  # 1.31 has all fields of the manifests: successPolicy is the last
READ_AND_WRITE = """
import json, sys
from kubeflow_trainer_api import models
print(json.dumps(models.TrainerV1alpha1TrainJob.from_dict(json.load(sys.stdin)).to_dict()))
"""


def objects_in(text):
    objects, position, decoder = [], 0, json.JSONDecoder()
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        found, position = decoder.raw_decode(text, position)
        objects.append(found)
    return objects


def goldens():
    return {path.stem: objects_in(path.read_text()) for path in sorted((HERE / "golden").glob("*.json"))}


def validate(objects, minor):
    """The complaints of kubernetes-validate; empty if there are none."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("\n---\n".join(json.dumps(thing) for thing in objects))
        file.flush()
        done = subprocess.run([TOOLS / "kubernetes-validate", "--strict", "-k", f"1.{minor}.0", file.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


def read_and_write(train_job):
    """The TrainJob as Kubeflow's types have it; or the text of their error."""
    done = subprocess.run([TOOLS / "python", "-c", READ_AND_WRITE], input=json.dumps(train_job), text=True,
                          capture_output=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


class Kubernetes(unittest.TestCase):
    def test_the_manifests_are_valid(self):
        for name, objects in goldens().items():
            own = [thing for thing in objects if thing["kind"] != "TrainJob"]
            for minor in range(OLDEST, NEWEST + 1):
                with self.subTest(name=name, version=minor):
                    self.assertEqual(validate(own, minor), "")

    def test_a_broken_manifest_is_found(self):
        job = goldens()["managed"][2]
        for change in (lambda spec: spec.update(subdomian="x"),
                       lambda spec: spec.update(enableServiceLinks="no"),
                       lambda spec: spec["containers"][0]["env"][0].update(valeu="x")):
            broken = copy.deepcopy(job)
            change(broken["spec"]["template"]["spec"])
            self.assertIn("did not validate", validate([broken], NEWEST))


class Kubeflow(unittest.TestCase):
    def train_job(self):
        return goldens()["train_job"][-1]

    def test_the_train_job_is_valid(self):
        self.assertEqual(read_and_write(self.train_job()), self.train_job())

    def test_a_broken_train_job_is_found(self):
        unknown = self.train_job()
        unknown["spec"]["trainer"]["nodes"] = 3
        self.assertNotEqual(read_and_write(unknown), unknown)
        wrong = self.train_job()
        wrong["spec"]["trainer"]["numNodes"] = "four"
        self.assertIn("numNodes", read_and_write(wrong))


if __name__ == "__main__":
    if not (TOOLS / "kubernetes-validate").exists() or subprocess.run(
            [TOOLS / "python", "-c", "import kubeflow_trainer_api"], capture_output=True).returncode:
        print("SKIPPED: kubernetes-validate or kubeflow-trainer-api is not in .venv; scripts/bootstrap installs them")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
