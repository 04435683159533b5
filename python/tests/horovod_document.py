# The program of "Horovod 모듈 사용하여 Pytorch Multi GPU 학습 효율적으로 하기" as that page prints it. The page
# leaves out the lines down to the second import of torch. It has lost the indentation of four lines of the loop.
# test_horovod_programs.py runs this file.
import torch
import torchvision
import tqdm

lr = 1e-4


def Model():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 32), torch.nn.ReLU(),
                               torch.nn.Linear(32, 10))


import torch
import horovod.torch as hvd

hvd.init()

torch.cuda.set_device(hvd.local_rank())
train_dataset = torchvision.datasets.MNIST(
    root='data',
    train=True,
    transform=torchvision.transforms.ToTensor())
train_sampler = torch.utils.data.distributed.DistributedSampler(
    train_dataset,
    num_replicas=hvd.size(),
    rank=hvd.rank())
train_loader = torch.utils.data.DataLoader(
    train_dataset,
    batch_size=128,
    num_workers=8,
    sampler=train_sampler)
model = Model()
model.cuda()
optimizer = torch.optim.Adam(
    params=model.parameters(),
    lr=lr)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters())
criterion = torch.nn.CrossEntropyLoss()
hvd.broadcast_parameters(
    model.state_dict(),
    root_rank=0)

for epoch in range(100):

    acc = 0
    loss = 0
    model.train()
    for data, target in tqdm.tqdm(train_loader):

        data = data.cuda()
        target = target.cuda()

        optimizer.zero_grad()
        logits = model(data)
        step_loss = criterion(logits, target)
        step_loss.backward()
        optimizer.step()

        pred = torch.argmax(logits, axis=1)
        pred = pred.eq(target).sum().item() / data.shape[0]

        loss += step_loss.item()
        acc += pred

    print(f'loss : {loss / len(train_loader)}')
    print(f'acc : {acc / len(train_loader)}')
