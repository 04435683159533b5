#include "peal/group/messages.h"

#include <memory>
#include <vector>

#include "peal/group/state.h"

namespace peal {

void Messages::send(const ConstBuffer& data, Rank to, const MessageOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.send(data, to, options.tag); });
}

Rank Messages::recv(const Buffer& data, Rank from, const MessageOptions& options) {
  return state_.run(options.timeout, [&](Call& call) { call.recv(data, from, options.tag); });
}

WorkPtr Messages::isend(const ConstBuffer& data, Rank to, const MessageOptions& options) {
  return state_.start(options.timeout, [&](Call& call) { call.send(data, to, options.tag); });
}

WorkPtr Messages::irecv(const Buffer& data, Rank from, const MessageOptions& options) {
  return state_.start(options.timeout, [&](Call& call) { call.recv(data, from, options.tag); });
}

WorkPtr Messages::batch_isend_irecv(std::span<const PointToPoint> batch,
                                    const CallOptions& options) {
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
  return state_.backend->start(requests, state_.resolve(options.timeout));
}

}  // namespace peal
