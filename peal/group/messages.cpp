#include "peal/group/messages.h"

#include <memory>
#include <vector>

#include "peal/group/state.h"

namespace peal {

void Messages::send(ConstBuffer data, Rank to, Tag tag, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.send(data, to, tag); });
}

Rank Messages::recv(Buffer data, Rank from, Tag tag, Timeout timeout) {
  return state_.run(timeout, [&](Call& call) { call.recv(data, from, tag); });
}

WorkPtr Messages::isend(ConstBuffer data, Rank to, Tag tag, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.send(data, to, tag); });
}

WorkPtr Messages::irecv(Buffer data, Rank from, Tag tag, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.recv(data, from, tag); });
}

WorkPtr Messages::batch_isend_irecv(std::span<const PointToPoint> batch, Timeout timeout) {
  state_.check_alive();
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<Request> requests;
  for (const PointToPoint& one : batch) {
    calls.push_back(std::make_unique<Call>(state_.rank, state_.size, state_.capabilities));
    if (one.kind == PointToPoint::Kind::kSend) {
      calls.back()->send(one.buffer, one.peer, one.tag);
    } else {
      calls.back()->recv(one.buffer, one.peer, one.tag);
    }
    requests.push_back(calls.back()->request());
  }
  return state_.backend->start(requests, state_.resolve(timeout));
}

}  // namespace peal
