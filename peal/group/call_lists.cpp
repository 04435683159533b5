#include <fmt/format.h>

#include "peal/group/call.h"

namespace peal {
namespace {

/// The part [offset, offset + count) of the buffer.
template <class AnyBuffer>
AnyBuffer part_of(const AnyBuffer& buffer, Elements offset, Elements count) {
  AnyBuffer part = buffer;
  using Byte = std::conditional_t<std::is_same_v<AnyBuffer, Buffer>, std::byte, const std::byte>;
  part.data = static_cast<Byte*>(buffer.data) + bytes_of(offset, buffer.dtype).value;
  part.count = count;
  return part;
}

/// Divides each of `large` into `size` blocks, and lists the blocks by rank, then by buffer.
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

void Call::all_gather_each(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
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
  note_places(in, own_blocks(request_.output));
}

void Call::reduce_scatter_each(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
  if (in.size() != out.size()) {
    refuse(fmt::format("{} input buffers, but {} output buffers", in.size(), out.size()));
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    check_total("input", in[k].count, out[k].count * size_);
  }
  inputs_ = by_rank(in, size_);
  use_input(inputs_);
  use_output(out);
  request_.count = total_of(out);
  note_places(own_blocks(request_.input), out);
}

void Call::check_one_buffer_each(std::size_t buffers) const {
  if (buffers != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("{} buffers for {} ranks: pass one for each rank", buffers, size_));
  }
}

void Call::scatter_list(std::span<const ConstBuffer> in, const Buffer& out) {
  use_output(out);
  std::vector<Elements> counts(static_cast<std::size_t>(size_));
  if (rank_ == request_.root) {
    check_one_buffer_each(in.size());
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = in[r].count;
    const ConstBuffer& own = in[static_cast<std::size_t>(rank_)];
    check_total("output", out.count, own.count);
    use_input(in);
    note_places(own_blocks(request_.input), request_.output);
  }
  counts[static_cast<std::size_t>(rank_)] = out.count;
  use_own_blocks(std::move(counts));
}

void Call::gather_list(const ConstBuffer& in, std::span<const Buffer> out) {
  use_input(in);
  std::vector<Elements> counts(static_cast<std::size_t>(size_));
  if (rank_ == request_.root) {
    check_one_buffer_each(out.size());
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = out[r].count;
    const Buffer& own = out[static_cast<std::size_t>(rank_)];
    check_total("output for this rank", own.count, in.count);
    use_output(out);
    note_places(request_.input, own_blocks(request_.output));
  }
  counts[static_cast<std::size_t>(rank_)] = in.count;
  use_own_blocks(std::move(counts));
}

void Call::all_gather_list(const ConstBuffer& in, std::span<const Buffer> out) {
  check_one_buffer_each(out.size());
  std::vector<Elements> counts;
  for (const Buffer& buffer : out) counts.push_back(buffer.count);
  use_blocks(counts);
  use_input(in);
  use_output(out);
  const Buffer& own = out[static_cast<std::size_t>(rank_)];
  check_total("output for this rank", own.count, in.count);
  note_places(request_.input, own_blocks(request_.output));
}

void Call::reduce_scatter_list(std::span<const ConstBuffer> in, const Buffer& out) {
  check_one_buffer_each(in.size());
  std::vector<Elements> counts;
  for (const ConstBuffer& buffer : in) counts.push_back(buffer.count);
  use_blocks(counts);
  use_input(in);
  use_output(out);
  const ConstBuffer& own = in[static_cast<std::size_t>(rank_)];
  check_total("output", out.count, own.count);
  note_places(own_blocks(request_.input), request_.output);
}

void Call::all_to_all_list(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
  const auto ranks = static_cast<std::size_t>(size_);
  if (in.size() != ranks || out.size() != ranks) {
    refuse(
        fmt::format("{} input and {} output buffers for {} ranks: pass one input and one output "
                    "buffer for each rank",
                    in.size(),
                    out.size(),
                    size_));
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
  note_places({}, {});
  use_own_blocks(std::move(counts));
}

}  // namespace peal
