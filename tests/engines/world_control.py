"""Controls a running world from a command in it or from outside: world_control.py FOLDER ACTION HOST.

The actions are cut, freeze, kill_all, restore and processes, which prints a line for each process: its number, its
number in the host, and its command.
"""
import sys

import world

ACTIONS = ("cut", "freeze", "kill_all", "restore", "processes")


def main(folder, action, host):
    attached = world.World.attach(folder)
    if action not in ACTIONS or host not in attached.names:
        sys.exit(f"test-hosts: `{action} {host}`: the actions are {', '.join(ACTIONS)}; "
                 f"the hosts are {', '.join(attached.names)}")
    result = getattr(attached, action)(host)
    for process in result or ():
        print(process.pid, process.pid_inside, *process.command)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
