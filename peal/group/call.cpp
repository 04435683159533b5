#include "peal/group/call.h"

#include <fmt/format.h>

namespace peal {

void Call::use_tag(Tag tag) {
  if (tag.value < 0) refuse(fmt::format("tag {} is negative; tags count from 0", tag.value));
  request_.tag = tag;
}

void Call::send(const ConstBuffer& data, Rank to, Tag tag) {
  begin(Operation::kSend);
  use_root(to);
  use_tag(tag);
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
  use_tag(tag);
  use_output(data);
  request_.count = data.count;
}

void Call::barrier() { begin(Operation::kBarrier); }

void Call::broadcast(std::span<const Buffer> data, Rank root) {
  begin(Operation::kBroadcast);
  use_root(root);
  use_both(data);  // buffers may overlap: both writes store the same values
  request_.in_place = true;
  request_.count = total_of(data);
}

void Call::all_reduce(std::span<const Buffer> data, ReduceOp op) {
  begin(Operation::kAllReduce);
  use_both(data);
  if (data.size() > 1) note_places(request_.input, request_.output);
  use_op(op);
  request_.in_place = true;
  request_.count = total_of(data);
}

void Call::reduce(std::span<const Buffer> data, Rank root, ReduceOp op) {
  begin(Operation::kReduce);
  use_root(root);
  use_both(data);
  if (data.size() > 1) note_places(request_.input, request_.output);
  use_op(op);
  if (rank_ != root) request_.output = {};
  request_.in_place = true;
  request_.count = total_of(data);
}

}  // namespace peal
