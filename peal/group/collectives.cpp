#include "peal/group/collectives.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/group/monitored_barrier.h"
#include "peal/group/state.h"

namespace peal {

// ---- one buffer, or several as one

void Collectives::broadcast(Buffer data, Rank root, Timeout timeout) {
  broadcast({&data, 1}, root, timeout);
}
WorkPtr Collectives::broadcast_async(Buffer data, Rank root, Timeout timeout) {
  return broadcast_async({&data, 1}, root, timeout);
}
void Collectives::all_reduce(Buffer data, ReduceOp op, Timeout timeout) {
  all_reduce({&data, 1}, op, timeout);
}
WorkPtr Collectives::all_reduce_async(Buffer data, ReduceOp op, Timeout timeout) {
  return all_reduce_async({&data, 1}, op, timeout);
}
void Collectives::reduce(Buffer data, Rank root, ReduceOp op, Timeout timeout) {
  reduce({&data, 1}, root, op, timeout);
}
WorkPtr Collectives::reduce_async(Buffer data, Rank root, ReduceOp op, Timeout timeout) {
  return reduce_async({&data, 1}, root, op, timeout);
}

void Collectives::broadcast(std::span<const Buffer> data, Rank root, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.broadcast(data, root); });
}
WorkPtr Collectives::broadcast_async(std::span<const Buffer> data, Rank root, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.broadcast(data, root); });
}
void Collectives::all_reduce(std::span<const Buffer> data, ReduceOp op, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_reduce(data, op); });
}
WorkPtr Collectives::all_reduce_async(std::span<const Buffer> data, ReduceOp op, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_reduce(data, op); });
}
void Collectives::reduce(std::span<const Buffer> data, Rank root, ReduceOp op, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.reduce(data, root, op); });
}
WorkPtr Collectives::reduce_async(std::span<const Buffer> data,
                                  Rank root,
                                  ReduceOp op,
                                  Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.reduce(data, root, op); });
}

// ---- meeting

void Collectives::barrier(Timeout timeout) {
  state_.run(timeout, [](Call& call) { call.barrier(); });
}
WorkPtr Collectives::barrier_async(Timeout timeout) {
  return state_.start(timeout, [](Call& call) { call.barrier(); });
}
void Collectives::monitored_barrier(Timeout timeout) {
  const Capabilities& able = state_.capabilities;
  if (!able.has(Operation::kSend) || !able.has(Operation::kRecv) || !able.has(DType::kU8)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("monitored_barrier is made of sends and receives of bytes, which the "
                            "{} backend cannot do: use barrier",
                            able.name));
  }
  state_.check_alive();
  peal::monitored_barrier(*state_.backend, state_.options.name, state_.resolve(timeout));
}

}  // namespace peal
