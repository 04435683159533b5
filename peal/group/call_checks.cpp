#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/group/call.h"

namespace peal {

Elements Call::total(std::span<const Elements> counts) {
  return std::accumulate(counts.begin(), counts.end(), Elements(0));
}

void Call::refuse_operation() const {
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format(
          "{}: the {} backend cannot do it", name_of(request_.operation), capabilities_.name));
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

void Call::refuse_root(Rank root) const {
  refuse(fmt::format("rank {} is not in the group, whose ranks are 0 to {}", root, size_ - 1));
}

void Call::use_both(std::span<const Buffer> buffers) {
  use_output(buffers);
  if (buffers.size() == 1) {
    one_input_[0] = buffers[0];
    request_.input = one_input_;
  } else {
    inputs_.assign(buffers.begin(), buffers.end());
    request_.input = inputs_;
  }
}

void Call::use_blocks(std::span<const Elements> counts) {
  if (counts.empty()) return;
  if (counts.size() != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("{} counts for {} ranks: pass one for each rank", counts.size(), size_));
  }
  if (std::all_of(counts.begin(), counts.end(), [&](Elements c) { return c == counts[0]; })) {
    request_.count = counts[0];
    return;
  }
  use_own_blocks({counts.begin(), counts.end()});
}

void Call::use_own_blocks(std::vector<Elements> counts) {
  for (const Elements count : counts) {
    if (count.value < 0) refuse(fmt::format("a count of {} is negative", count.value));
  }
  counts_ = std::move(counts);
  request_.counts = counts_;
  request_.count = Elements(0);
}

void Call::refuse_type(DType dtype) const {
  if (typed_ && dtype != request_.dtype) {
    refuse(fmt::format(
        "buffers of different types, {} and {}", name_of(request_.dtype), name_of(dtype)));
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: the {} backend does not know the type {}",
                          name_of(request_.operation),
                          capabilities_.name,
                          name_of(dtype)));
}

void Call::refuse_memory(Elements count) const {
  if (count.value < 0) refuse(fmt::format("a count of {} is negative", count.value));
  refuse(fmt::format("{} elements at a null pointer", count.value));
}

void Call::check_total(const char* which, Elements actual, Elements expected) const {
  if (actual != expected) {
    refuse(
        fmt::format("the {} holds {} elements, expected {}", which, actual.value, expected.value));
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
        "input and output overlap, but not in the form that the operation allows in place: "
        "the small buffer must be this rank's block of the large one");
  }
}

void Call::note_places(std::span<const ConstBuffer> in, std::span<const Buffer> out) {
  std::size_t full = 0;
  std::size_t same = 0;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k].count.value == 0) continue;
    full += 1;
    same += in[k].data == out[k].data ? 1 : 0;
  }
  request_.in_place = full > 0 && same == full;

  std::vector<Use> uses;
  for (const ConstBuffer& buffer : request_.input) {
    const bool is_own = !in.empty() && &buffer >= &in.front() && &buffer <= &in.back();
    if (is_own && request_.in_place) continue;  // it is counted as output
    uses.push_back({{buffer.data, buffer.count}, Use::Kind::kRead});
  }
  for (const Buffer& buffer : request_.output) {
    uses.push_back({{buffer.data, buffer.count}, Use::Kind::kWritten});
  }
  std::erase_if(uses, [](const Use& use) { return use.extent.count.value == 0; });
  check_apart(std::move(uses));
}

/// Checks in the order of addresses: a buffer overlaps if an earlier one ends after its beginning.
void Call::check_apart(std::vector<Use> uses) const {
  const std::less<const void*> before;
  std::ranges::sort(uses, before, [](const Use& use) { return use.extent.data; });
  const void* read_to = nullptr;
  const void* written_to = nullptr;
  for (const Use& use : uses) {
    const bool writes = use.kind == Use::Kind::kWritten;
    if (before(use.extent.data, written_to) || (writes && before(use.extent.data, read_to))) {
      refuse(
          "an output overlaps an input or another output; in place, only the whole block of this "
          "rank may be both, if the operation has an in-place form");
    }
    const void*& end = writes ? written_to : read_to;
    end = std::max(end, end_of(use.extent), before);
  }
}

const void* Call::end_of(const Extent& extent) const {
  return static_cast<const std::byte*>(extent.data) + bytes_of(extent.count, request_.dtype).value;
}

bool Call::overlap(const Extent& a, const Extent& b) const {
  const std::less<const void*> before;
  return before(a.data, end_of(b)) && before(b.data, end_of(a));
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
