#include <fmt/format.h>

#include "peal/group/call.h"

namespace peal {

void Call::scatter(const ConstBuffers& in,
                   const Buffer& out,
                   Rank root,
                   std::span<const Elements> counts) {
  begin(Operation::kScatter);
  use_root(root);
  if (!in.is_list()) return scatter_one(in.one(), out, counts);
  refuse_counts_of_a_list(counts);
  scatter_list(in.all(), out);
}

void Call::gather(const ConstBuffer& in,
                  const Buffers& out,
                  Rank root,
                  std::span<const Elements> counts) {
  begin(Operation::kGather);
  use_root(root);
  if (!out.is_list()) return gather_one(in, out.one(), counts);
  refuse_counts_of_a_list(counts);
  gather_list(in, out.all());
}

void Call::all_gather(const ConstBuffers& in,
                      const Buffers& out,
                      std::span<const Elements> counts) {
  begin(Operation::kAllGather);
  if (!in.is_list() && !out.is_list()) return all_gather_one(in.one(), out.one(), counts);
  refuse_counts_of_a_list(counts);
  if (!out.is_list()) refuse("the input is a list of buffers, so the output must be a list too");
  if (in.is_list()) return all_gather_each(in.all(), out.all());
  all_gather_list(in.one(), out.all());
}

void Call::reduce_scatter(const ConstBuffers& in,
                          const Buffers& out,
                          ReduceOp op,
                          std::span<const Elements> counts) {
  begin(Operation::kReduceScatter);
  if (!in.is_list() && !out.is_list()) {
    reduce_scatter_one(in.one(), out.one(), counts);
  } else {
    refuse_counts_of_a_list(counts);
    if (!in.is_list()) refuse("the output is a list of buffers, so the input must be a list too");
    if (out.is_list()) {
      reduce_scatter_each(in.all(), out.all());
    } else {
      reduce_scatter_list(in.all(), out.one());
    }
  }
  use_op(op);
}

void Call::all_to_all(const ConstBuffers& in,
                      const Buffers& out,
                      std::span<const Elements> to,
                      std::span<const Elements> from) {
  begin(Operation::kAllToAll);
  if (in.is_list() != out.is_list()) {
    refuse("input and output must both be one buffer, or both be lists of buffers");
  }
  if (!in.is_list()) return all_to_all_one(in.one(), out.one(), to, from);
  refuse_counts_of_a_list(to);
  refuse_counts_of_a_list(from);
  all_to_all_list(in.all(), out.all());
}

void Call::refuse_counts_of_a_list(std::span<const Elements> counts) const {
  if (!counts.empty()) {
    refuse("counts cut one buffer into blocks; the buffers of a list are the blocks");
  }
}

// ---- one buffer with the blocks

void Call::scatter_one(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts) {
  request_.count = out.count;
  use_blocks(counts);
  use_output(out);
  if (!counts.empty()) check_total("output", out.count, counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != request_.root) return;
  check_total("input", in.count, counts.empty() ? out.count * size_ : total(counts));
  use_input(in);
  note_place(out.data, out.count, own_block(in.data), {in.data, in.count});
}

void Call::gather_one(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts) {
  request_.count = in.count;
  use_blocks(counts);
  use_input(in);
  if (!counts.empty()) check_total("input", in.count, counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != request_.root) return;
  check_total("output", out.count, counts.empty() ? in.count * size_ : total(counts));
  use_output(out);
  note_place(in.data, in.count, own_block(out.data), {out.data, out.count});
}

void Call::all_gather_one(const ConstBuffer& in,
                          const Buffer& out,
                          std::span<const Elements> counts) {
  request_.count = in.count;
  use_blocks(counts);
  use_input(in);
  use_output(out);
  if (!counts.empty()) check_total("input", in.count, counts[static_cast<std::size_t>(rank_)]);
  check_total("output", out.count, counts.empty() ? in.count * size_ : total(counts));
  note_place(in.data, in.count, own_block(out.data), {out.data, out.count});
}

void Call::reduce_scatter_one(const ConstBuffer& in,
                              const Buffer& out,
                              std::span<const Elements> counts) {
  request_.count = out.count;
  use_blocks(counts);
  use_input(in);
  use_output(out);
  if (!counts.empty()) check_total("output", out.count, counts[static_cast<std::size_t>(rank_)]);
  check_total("input", in.count, counts.empty() ? out.count * size_ : total(counts));
  note_place(out.data, out.count, own_block(in.data), {in.data, in.count});
}

void Call::all_to_all_one(const ConstBuffer& in,
                          const Buffer& out,
                          std::span<const Elements> to,
                          std::span<const Elements> from) {
  use_input(in);
  use_output(out);
  if (to.empty() != from.empty()) refuse("give the counts of both directions, or of none");
  if (to.empty()) {
    if (in.count.value % size_ != 0) {
      refuse(fmt::format("{} elements cannot be cut into {} equal blocks", in.count.value, size_));
    }
    check_total("output", out.count, in.count);
    request_.count = in.count / size_;
  } else {
    const auto ranks = static_cast<std::size_t>(size_);
    if (to.size() != ranks || from.size() != ranks) {
      refuse(fmt::format("{} and {} counts for {} ranks: pass one count of each kind for each rank",
                         to.size(),
                         from.size(),
                         size_));
    }
    check_total("input", in.count, total(to));
    check_total("output", out.count, total(from));
    std::vector<Elements> counts(ranks * ranks);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      counts[static_cast<std::size_t>(rank_) * ranks + peer] = to[peer];
      counts[peer * ranks + static_cast<std::size_t>(rank_)] = from[peer];
    }
    if (to[static_cast<std::size_t>(rank_)] != from[static_cast<std::size_t>(rank_)]) {
      refuse("the block that a rank sends to itself has two different counts");
    }
    use_own_blocks(std::move(counts));
  }
  if (in.count.value > 0 && out.count.value > 0 &&
      overlap({in.data, in.count}, {out.data, out.count})) {
    refuse("input and output overlap: all_to_all needs two separate buffers");
  }
}

}  // namespace peal
