"""The program of a node in jobs_test.py: the code in the guide of the managed service, with a model to train.

    managed_node.py [GO]    # prints what the node sees; waits until the file GO exists; trains
"""
import json
import os
import pathlib
import sys
import time

import torch

SHOWN = ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "CLUSTER_SPEC", "LOCAL_RANK", "PEAL_TEST_IMAGE")
shm = os.statvfs("/dev/shm")
print(json.dumps({**{name: os.environ.get(name) for name in SHOWN}, "shm": shm.f_blocks * shm.f_frsize}), flush=True)
while len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)

torch.distributed.init_process_group(
    backend='gloo',
    init_method='env://'
)
torch.manual_seed(torch.distributed.get_rank())  # DistributedDataParallel gives all ranks the model of rank 0
model = torch.nn.Linear(2, 1, bias=False)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    data = torch.full((1, 2), torch.distributed.get_rank() + 1.0)
    torch.nn.functional.mse_loss(model(data), torch.ones(1, 1)).backward()
    optimizer.step()
print("weights", [round(value, 5) for value in model.module.weight.flatten().tolist()], flush=True)
torch.distributed.destroy_process_group()
