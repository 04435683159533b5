#include "peal/train/ddp/sparse_gradients.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "peal/train/tensors/tensors.h"

namespace peal::train {
namespace {

/// A row for each entry of a sparse tensor, from all ranks in rank order.
Tensor gather_rows(ProcessGroup& group,
                   const Tensor& mine,
                   const std::vector<std::int64_t>& rows,
                   Timeout timeout) {
  std::vector<std::int64_t> shape = mine.sizes().vec();
  Tensors blocks;
  std::int64_t all = 0;
  for (const std::int64_t count : rows) all += count;
  shape[0] = all;
  Tensor gathered = torch::empty(shape, mine.options());
  for (Tensor& block : gathered.split_with_sizes(rows)) blocks.push_back(block);
  all_gather(group, mine.contiguous(), blocks, {.timeout = timeout});
  return gathered;
}

}  // namespace

Tensor sum_sparse(ProcessGroup& group,
                  const Tensor& gradient,
                  const Tensor& parameter,
                  double scale,
                  Timeout timeout) {
  const torch::NoGradGuard no_grad;
  Tensor mine = gradient;
  std::vector<std::int64_t> sparse_dims(static_cast<std::size_t>(group.size()));
  const std::vector<std::int64_t> here = {mine.defined() && mine.is_sparse() ? mine.sparse_dim()
                                                                             : 0};
  group.all_gather(here, sparse_dims, {.timeout = timeout});
  const std::int64_t sparse_dim = *std::ranges::max_element(sparse_dims);

  if (sparse_dim == 0) {  // this time all ranks have dense gradients
    mine = mine.defined() ? mine : torch::zeros_like(parameter);
    all_reduce(group, mine, {.timeout = timeout});
    return mine.mul_(scale);
  }
  if (!mine.defined()) {
    std::vector<std::int64_t> values = parameter.sizes().vec();
    values.erase(values.begin(), values.begin() + sparse_dim);
    values.insert(values.begin(), 0);
    const torch::TensorOptions options = parameter.options().requires_grad(false);
    mine = torch::sparse_coo_tensor(torch::empty({sparse_dim, 0}, options.dtype(torch::kInt64)),
                                    torch::empty(values, options),
                                    parameter.sizes());
  } else if (!mine.is_sparse()) {
    mine = mine.to_sparse(sparse_dim);
  }
  mine = mine.coalesce();

  std::vector<std::int64_t> entries(static_cast<std::size_t>(group.size()));
  const std::vector<std::int64_t> mine_entries = {mine._nnz()};
  group.all_gather(mine_entries, entries, {.timeout = timeout});
  const Tensor indices = gather_rows(group, mine.indices().t(), entries, timeout);
  const Tensor values = gather_rows(group, mine.values(), entries, timeout);
  return torch::sparse_coo_tensor(indices.t(), values * scale, parameter.sizes()).coalesce();
}

}  // namespace peal::train
