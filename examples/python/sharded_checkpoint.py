"""A sharded checkpoint: each rank writes its part, and another number of ranks can read it.

    peal run -n 2 python examples/python/sharded_checkpoint.py save FOLDER
    peal run -n 3 python examples/python/sharded_checkpoint.py load FOLDER
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from models import blocks


def main(what: str, folder: str, width: int = 24) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = blocks(number=2, width=width)
    if what == "load":
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    if what == "save":
        checkpoint.save(state, checkpoint_id=folder)
    else:
        checkpoint.load(state, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])
    total = sum(parameter.full_tensor().double().abs().sum().item()
                for parameter in model.parameters())
    print(f"rank {dist.get_rank()}: {what}, weights of {total:.9f} in all", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["save", "load"])
    parser.add_argument("folder")
    parser.add_argument("--backend", default="peal")
    arguments = parser.parse_args()
    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)
    main(arguments.what, arguments.folder)
    dist.destroy_process_group()
