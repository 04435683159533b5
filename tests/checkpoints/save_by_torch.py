"""One of two ranks that save shards with torch: save_by_torch.py FOLDER STORE RANK.

Called by checkpoints_test.py, which knows the tensors.
"""
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor

FOLDER, STORE, RANK = sys.argv[1:4]
dist.init_process_group("gloo", init_method=f"file://{STORE}", rank=int(RANK), world_size=2)
mesh = DeviceMesh("cpu", range(2))
whole = torch.arange(35, dtype=torch.float32).view(7, 5)
state = {"rows": distribute_tensor(whole, mesh, [Shard(0)]),
         "columns": distribute_tensor(whole, mesh, [Shard(1)]),
         "all": whole.half()}
dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(FOLDER, save_distributed=True))
dist.destroy_process_group()
