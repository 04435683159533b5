"""Becomes the process of a pod: reads {"words", "environment", "directory", "hosts"} from stdin, gives itself
its own /etc/hosts, and executes the words. No shell is between, because a shell drops variables such as "a.b"."""
import json
import os
import subprocess
import sys


def main():
    pod = json.load(sys.stdin)
    subprocess.run(["mount", "--bind", pod["hosts"], "/etc/hosts"], check=True)
    with open(os.devnull, encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 0)
    try:
        os.chdir(pod["directory"])
        os.execvpe(pod["words"][0], pod["words"], pod["environment"])
    except OSError as error:
        with open(int(sys.argv[1]), "w", encoding="utf-8") as problem:  # closed by exec
            problem.write(f'failed to start "{pod["words"][0]}": {error.strerror}')
        sys.exit(128)


main()
