"""Trains by elastic training, for test_horovod_drills.py:

    python -m peal.horovod horovod_elastic_worker.py FOLDER EPOCHS

At the end of an epoch, rank 0 writes FOLDER/epoch<N>.json: the samples that committed steps have used, and
the number of ranks in each step.
"""

import json
import sys
import time
from pathlib import Path

import torch

import horovod.torch as hvd

SAMPLES, BATCH = 96, 4

torch.set_num_threads(1)
hvd.init()
torch.manual_seed(7)
data = torch.randn(SAMPLES, 4)
target = data.sum(1, keepdim=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, used=[], sizes=[],
                               sampler=hvd.elastic.ElasticSampler(range(SAMPLES)))


@hvd.elastic.run
def train(state: "hvd.elastic.TorchState") -> None:
    folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
    while state.epoch < epochs:
        mine = list(state.sampler)
        for first in range(0, len(mine), BATCH):
            batch = mine[first:first + BATCH]
            optimizer.zero_grad()
            (model(data[batch]) - target[batch]).square().mean().backward()
            optimizer.step()
            state.used += sum(hvd.allgather_object(batch), [])
            state.sizes.append(hvd.size())
            state.sampler.record_batch(first // BATCH, len(batch))
            time.sleep(0.02)
            state.commit()
        if hvd.rank() == 0:
            folder.joinpath(f"epoch{state.epoch}.json").write_text(
                json.dumps({"used": state.used, "sizes": state.sizes}))
        state.epoch += 1
        state.used, state.sizes = [], []
        state.sampler.set_epoch(state.epoch)
        state.commit()


train(state)
print("rank", hvd.rank(), "of", hvd.size(), "has finished", flush=True)
