#include "peal/group/call.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {
namespace {

Elements total(std::span<const Elements> counts) {
  return std::accumulate(counts.begin(), counts.end(), Elements(0));
}

template <class AnyBuffer>
Elements total_of(std::span<const AnyBuffer> buffers) {
  Elements sum;
  for (const AnyBuffer& buffer : buffers) sum += buffer.count;
  return sum;
}

/// buffer[offset, offset + count)
template <class AnyBuffer>
AnyBuffer part_of(const AnyBuffer& buffer, Elements offset, Elements count) {
  AnyBuffer part = buffer;
  using Byte = std::conditional_t<std::is_same_v<AnyBuffer, Buffer>, std::byte, const std::byte>;
  part.data = static_cast<Byte*>(buffer.data) + bytes_of(offset, buffer.dtype).value;
  part.count = count;
  return part;
}

/// Cuts each of `large` into `size` blocks and lists them by rank, then by buffer.
template <class AnyBuffer>
std::vector<AnyBuffer> by_rank(std::span<const AnyBuffer> large, int size) {
  std::vector<AnyBuffer> blocks;
  blocks.reserve(large.size() * static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    for (const AnyBuffer& buffer : large) {
      const Elements block = buffer.count / size;
      blocks.push_back(part_of(buffer, block * rank, block));
    }
  }
  return blocks;
}

}  // namespace

Call::Call(Rank rank, int size, const Capabilities& capabilities)
    : rank_(rank), size_(size), capabilities_(capabilities) {}

// ---- the operations ---------------------------------------------------------------------------

void Call::send(const ConstBuffer& data, Rank to, Tag tag) {
  begin(Operation::kSend);
  use_root(to);
  if (tag.value < 0) refuse(fmt::format("tag {} is negative; tags count from 0", tag.value));
  request_.tag = tag;
  use_input(data);
  request_.count = data.count;
}

void Call::recv(const Buffer& data, Rank from, Tag tag) {
  begin(Operation::kRecv);
  if (from == kAnySource) {
    request_.root = from;
  } else {
    use_root(from);
  }
  if (tag.value < 0) refuse(fmt::format("tag {} is negative; tags count from 0", tag.value));
  request_.tag = tag;
  use_output(data);
  request_.count = data.count;
}

void Call::barrier() { begin(Operation::kBarrier); }

void Call::broadcast(std::span<const Buffer> data, Rank root) {
  begin(Operation::kBroadcast);
  use_root(root);
  use_both(data);
  request_.in_place = true;
  request_.count = total_of(data);
}

void Call::all_reduce(std::span<const Buffer> data, ReduceOp op) {
  begin(Operation::kAllReduce);
  use_both(data);
  use_op(op);
  request_.in_place = true;
  request_.count = total_of(data);
}

void Call::reduce(std::span<const Buffer> data, Rank root, ReduceOp op) {
  begin(Operation::kReduce);
  use_root(root);
  use_both(data);
  use_op(op);
  if (rank_ != root) request_.output = {};
  request_.in_place = true;
  request_.count = total_of(data);
}

void Call::all_gather(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
  begin(Operation::kAllGather);
  if (in.size() != out.size()) {
    refuse(fmt::format("{} input buffers, but {} output buffers", in.size(), out.size()));
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    check_total("output", out[k].count, in[k].count * size_);
  }
  use_input(in);
  outputs_ = by_rank(out, size_);
  use_output(outputs_);
  request_.count = total_of(in);
  if (in.size() == 1)
    note_place(in[0].data, in[0].count, own_block(out[0].data), {out[0].data, out[0].count});
}

void Call::reduce_scatter(std::span<const ConstBuffer> in,
                          std::span<const Buffer> out,
                          ReduceOp op) {
  begin(Operation::kReduceScatter);
  if (in.size() != out.size()) {
    refuse(fmt::format("{} input buffers, but {} output buffers", in.size(), out.size()));
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    check_total("input", in[k].count, out[k].count * size_);
  }
  inputs_ = by_rank(in, size_);
  use_input(inputs_);
  use_output(out);
  use_op(op);
  request_.count = total_of(out);
  if (in.size() == 1)
    note_place(out[0].data, out[0].count, own_block(in[0].data), {in[0].data, in[0].count});
}

void Call::scatter(const ConstBuffer& in,
                   const Buffer& out,
                   Rank root,
                   std::span<const Elements> counts) {
  begin(Operation::kScatter);
  use_root(root);
  request_.count = out.count;
  use_blocks(counts);
  use_output(out);
  if (!counts.empty()) check_total("output", out.count, counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != root) return;
  check_total("input", in.count, counts.empty() ? out.count * size_ : total(counts));
  use_input(in);
  note_place(out.data, out.count, own_block(in.data), {in.data, in.count});
}

void Call::gather(const ConstBuffer& in,
                  const Buffer& out,
                  Rank root,
                  std::span<const Elements> counts) {
  begin(Operation::kGather);
  use_root(root);
  request_.count = in.count;
  use_blocks(counts);
  use_input(in);
  if (!counts.empty()) check_total("input", in.count, counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != root) return;
  check_total("output", out.count, counts.empty() ? in.count * size_ : total(counts));
  use_output(out);
  note_place(in.data, in.count, own_block(out.data), {out.data, out.count});
}

void Call::all_gather(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts) {
  begin(Operation::kAllGather);
  request_.count = in.count;
  use_blocks(counts);
  use_input(in);
  use_output(out);
  if (!counts.empty()) check_total("input", in.count, counts[static_cast<std::size_t>(rank_)]);
  check_total("output", out.count, counts.empty() ? in.count * size_ : total(counts));
  note_place(in.data, in.count, own_block(out.data), {out.data, out.count});
}

void Call::reduce_scatter(const ConstBuffer& in,
                          const Buffer& out,
                          ReduceOp op,
                          std::span<const Elements> counts) {
  begin(Operation::kReduceScatter);
  request_.count = out.count;
  use_blocks(counts);
  use_input(in);
  use_output(out);
  use_op(op);
  if (!counts.empty()) check_total("output", out.count, counts[static_cast<std::size_t>(rank_)]);
  check_total("input", in.count, counts.empty() ? out.count * size_ : total(counts));
  note_place(out.data, out.count, own_block(in.data), {in.data, in.count});
}

void Call::all_to_all(const ConstBuffer& in,
                      const Buffer& out,
                      std::span<const Elements> to,
                      std::span<const Elements> from) {
  begin(Operation::kAllToAll);
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
      refuse(fmt::format("{} and {} counts for {} ranks", to.size(), from.size(), size_));
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
    refuse("input and output overlap");
  }
}

void Call::scatter_list(std::span<const ConstBuffer> in, const Buffer& out, Rank root) {
  begin(Operation::kScatter);
  use_root(root);
  use_output(out);
  std::vector<Elements> counts(static_cast<std::size_t>(size_));
  if (rank_ == root) {
    if (in.size() != counts.size())
      refuse(fmt::format("{} buffers for {} ranks", in.size(), size_));
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = in[r].count;
    const ConstBuffer& own = in[static_cast<std::size_t>(rank_)];
    check_total("output", out.count, own.count);
    use_input(in);
    note_place(out.data, out.count, own.data, {own.data, own.count});
  }
  counts[static_cast<std::size_t>(rank_)] = out.count;
  use_own_blocks(std::move(counts));
}

void Call::gather_list(const ConstBuffer& in, std::span<const Buffer> out, Rank root) {
  begin(Operation::kGather);
  use_root(root);
  use_input(in);
  std::vector<Elements> counts(static_cast<std::size_t>(size_));
  if (rank_ == root) {
    if (out.size() != counts.size())
      refuse(fmt::format("{} buffers for {} ranks", out.size(), size_));
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = out[r].count;
    const Buffer& own = out[static_cast<std::size_t>(rank_)];
    check_total("output for this rank", own.count, in.count);
    use_output(out);
    note_place(in.data, in.count, own.data, {own.data, own.count});
  }
  counts[static_cast<std::size_t>(rank_)] = in.count;
  use_own_blocks(std::move(counts));
}

void Call::all_gather_list(const ConstBuffer& in, std::span<const Buffer> out) {
  begin(Operation::kAllGather);
  if (out.size() != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("{} buffers for {} ranks", out.size(), size_));
  }
  std::vector<Elements> counts;
  for (const Buffer& buffer : out) counts.push_back(buffer.count);
  use_blocks(counts);
  use_input(in);
  use_output(out);
  const Buffer& own = out[static_cast<std::size_t>(rank_)];
  check_total("output for this rank", own.count, in.count);
  note_place(in.data, in.count, own.data, {own.data, own.count});
}

void Call::reduce_scatter_list(std::span<const ConstBuffer> in, const Buffer& out, ReduceOp op) {
  begin(Operation::kReduceScatter);
  if (in.size() != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("{} buffers for {} ranks", in.size(), size_));
  }
  std::vector<Elements> counts;
  for (const ConstBuffer& buffer : in) counts.push_back(buffer.count);
  use_blocks(counts);
  use_input(in);
  use_output(out);
  use_op(op);
  const ConstBuffer& own = in[static_cast<std::size_t>(rank_)];
  check_total("output", out.count, own.count);
  note_place(out.data, out.count, own.data, {own.data, own.count});
}

void Call::all_to_all_list(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
  begin(Operation::kAllToAll);
  const auto ranks = static_cast<std::size_t>(size_);
  if (in.size() != ranks || out.size() != ranks) {
    refuse(
        fmt::format("{} input and {} output buffers for {} ranks", in.size(), out.size(), size_));
  }
  use_input(in);
  use_output(out);
  std::vector<Elements> counts(ranks * ranks);
  const auto own = static_cast<std::size_t>(rank_);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    counts[own * ranks + peer] = in[peer].count;
    counts[peer * ranks + own] = out[peer].count;
  }
  check_total("output for this rank", out[own].count, in[own].count);
  use_own_blocks(std::move(counts));
}

// ---- what they are made of --------------------------------------------------------------------

void Call::begin(Operation operation) {
  request_.operation = operation;
  const auto& able = capabilities_.operations;
  if (std::find(able.begin(), able.end(), operation) == able.end()) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: the {} backend cannot do it", name_of(operation), capabilities_.name));
  }
}

void Call::use_op(ReduceOp op) {
  if (!has_meaning(op.kind, request_.dtype)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: {} has no meaning for {}",
                            name_of(request_.operation),
                            name_of(op.kind),
                            name_of(request_.dtype)));
  }
  request_.reduce = op;
}

void Call::use_root(Rank root) {
  if (root < 0 || root >= size_) {
    refuse(fmt::format("rank {} is not in the group, whose ranks are 0 to {}", root, size_ - 1));
  }
  request_.root = root;
}

void Call::use_input(const ConstBuffer& buffer) {
  one_input_[0] = buffer;
  use_input(std::span<const ConstBuffer>(one_input_));
}

void Call::use_output(const Buffer& buffer) {
  one_output_[0] = buffer;
  use_output(std::span<const Buffer>(one_output_));
}

void Call::use_input(std::span<const ConstBuffer> buffers) {
  for (const ConstBuffer& buffer : buffers) {
    check_type(buffer.dtype);
    check_memory(buffer.data, buffer.count);
  }
  request_.input = buffers;
}

void Call::use_output(std::span<const Buffer> buffers) {
  for (const Buffer& buffer : buffers) {
    check_type(buffer.dtype);
    check_memory(buffer.data, buffer.count);
  }
  request_.output = buffers;
}

void Call::use_both(std::span<const Buffer> buffers) {
  use_output(buffers);
  if (buffers.size() == 1) {
    use_input(buffers[0]);
  } else {
    inputs_.assign(buffers.begin(), buffers.end());
    use_input(inputs_);
  }
}

void Call::use_blocks(std::span<const Elements> counts) {
  if (counts.empty()) return;
  if (counts.size() != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("{} counts for {} ranks", counts.size(), size_));
  }
  if (std::all_of(counts.begin(), counts.end(), [&](Elements c) { return c == counts[0]; })) {
    request_.count = counts[0];
    return;
  }
  use_own_blocks({counts.begin(), counts.end()});
}

void Call::use_own_blocks(std::vector<Elements> counts) {
  for (const Elements count : counts) {
    if (count.value < 0) refuse(fmt::format("a count of {}", count.value));
  }
  counts_ = std::move(counts);
  request_.counts = counts_;
  request_.count = Elements(0);
}

void Call::check_type(DType dtype) {
  if (typed_ && dtype != request_.dtype) {
    refuse(fmt::format(
        "buffers of different types, {} and {}", name_of(request_.dtype), name_of(dtype)));
  }
  const auto& able = capabilities_.dtypes;
  if (std::find(able.begin(), able.end(), dtype) == able.end()) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the {} backend does not know the type {}",
                            name_of(request_.operation),
                            capabilities_.name,
                            name_of(dtype)));
  }
  request_.dtype = dtype;
  typed_ = true;
}

void Call::check_memory(const void* data, Elements count) const {
  if (count.value < 0) refuse(fmt::format("a count of {}", count.value));
  if (data == nullptr && count.value > 0)
    refuse(fmt::format("{} elements at a null pointer", count.value));
}

void Call::check_total(const char* which, Elements actual, Elements expected) const {
  if (actual != expected) {
    refuse(fmt::format(
        "the {} holds {} elements where {} are due", which, actual.value, expected.value));
  }
}

void Call::note_place(const void* small,
                      Elements small_count,
                      const void* own,
                      const Extent& large) {
  if (small_count.value == 0 || large.count.value == 0) return;
  if (small == own) {
    request_.in_place = true;
    return;
  }
  if (overlap({small, small_count}, large)) {
    refuse(
        "input and output overlap, but not as the operation in place would have it: "
        "the small buffer must be the rank's own block of the large one");
  }
}

bool Call::overlap(const Extent& a, const Extent& b) const {
  const auto end = [&](const Extent& extent) -> const void* {
    return static_cast<const std::byte*>(extent.data) +
           bytes_of(extent.count, request_.dtype).value;
  };
  const std::less<const void*> before;
  return before(a.data, end(b)) && before(b.data, end(a));
}

const void* Call::own_block(const void* large) const {
  return static_cast<const std::byte*>(large) + bytes_of(own_offset(), request_.dtype).value;
}

Elements Call::own_offset() const {
  if (counts_.empty()) return request_.count * rank_;
  return total(std::span(counts_).first(static_cast<std::size_t>(rank_)));
}

void Call::refuse(const std::string& why) const {
  throw Error(ErrorKind::kUsage,
              fmt::format("{} on rank {}: {}", name_of(request_.operation), rank_, why));
}

}  // namespace peal
