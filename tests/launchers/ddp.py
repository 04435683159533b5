"""A training step by DistributedDataParallel, as guides of managed services show it. Prints the sum of the
gradients, which is the same on all ranks: 8 * the mean of the rank numbers."""
import torch
import torch.distributed as dist

dist.init_process_group(backend="gloo", init_method="env://")
rank = dist.get_rank()
torch.manual_seed(rank)  # DistributedDataParallel gives all ranks the weights of rank 0
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.full((2, 4), float(rank))).sum().backward()
print(f"rank {rank} of {dist.get_world_size()}: {model.module.weight.grad.sum().item():.1f}", flush=True)
dist.destroy_process_group()
