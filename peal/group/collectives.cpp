#include "peal/group/collectives.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/group/monitored_barrier.h"
#include "peal/group/state.h"

namespace peal {

// ---- on whole buffers

void Collectives::broadcast(const Buffers& data, Rank root, const CallOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.broadcast(data.all(), root); });
}
WorkPtr Collectives::broadcast_async(const Buffers& data, Rank root, const CallOptions& options) {
  return state_.start(options.timeout, [&](Call& call) { call.broadcast(data.all(), root); });
}

void Collectives::all_reduce(const Buffers& data, const ReduceOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.all_reduce(data.all(), options.op); });
}
WorkPtr Collectives::all_reduce_async(const Buffers& data, const ReduceOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.all_reduce(data.all(), options.op); });
}

void Collectives::reduce(const Buffers& data, Rank root, const ReduceOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.reduce(data.all(), root, options.op); });
}
WorkPtr Collectives::reduce_async(const Buffers& data, Rank root, const ReduceOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.reduce(data.all(), root, options.op); });
}

// ---- on a block for each rank

void Collectives::scatter(const ConstBuffers& in,
                          const Buffer& out,
                          Rank root,
                          const BlockOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.scatter(in, out, root, options.counts); });
}
WorkPtr Collectives::scatter_async(const ConstBuffers& in,
                                   const Buffer& out,
                                   Rank root,
                                   const BlockOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.scatter(in, out, root, options.counts); });
}

void Collectives::gather(const ConstBuffer& in,
                         const Buffers& out,
                         Rank root,
                         const BlockOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.gather(in, out, root, options.counts); });
}
WorkPtr Collectives::gather_async(const ConstBuffer& in,
                                  const Buffers& out,
                                  Rank root,
                                  const BlockOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.gather(in, out, root, options.counts); });
}

void Collectives::all_gather(const ConstBuffers& in,
                             const Buffers& out,
                             const BlockOptions& options) {
  state_.run(options.timeout, [&](Call& call) { call.all_gather(in, out, options.counts); });
}
WorkPtr Collectives::all_gather_async(const ConstBuffers& in,
                                      const Buffers& out,
                                      const BlockOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.all_gather(in, out, options.counts); });
}

void Collectives::reduce_scatter(const ConstBuffers& in,
                                 const Buffers& out,
                                 const ReduceScatterOptions& options) {
  state_.run(options.timeout,
             [&](Call& call) { call.reduce_scatter(in, out, options.op, options.counts); });
}
WorkPtr Collectives::reduce_scatter_async(const ConstBuffers& in,
                                          const Buffers& out,
                                          const ReduceScatterOptions& options) {
  return state_.start(options.timeout, [&](Call& call) {
    call.reduce_scatter(in, out, options.op, options.counts);
  });
}

void Collectives::all_to_all(const ConstBuffers& in,
                             const Buffers& out,
                             const AllToAllOptions& options) {
  state_.run(options.timeout,
             [&](Call& call) { call.all_to_all(in, out, options.to, options.from); });
}
WorkPtr Collectives::all_to_all_async(const ConstBuffers& in,
                                      const Buffers& out,
                                      const AllToAllOptions& options) {
  return state_.start(options.timeout,
                      [&](Call& call) { call.all_to_all(in, out, options.to, options.from); });
}

// ---- synchronisation

void Collectives::barrier(const CallOptions& options) {
  state_.run(options.timeout, [](Call& call) { call.barrier(); });
}
WorkPtr Collectives::barrier_async(const CallOptions& options) {
  return state_.start(options.timeout, [](Call& call) { call.barrier(); });
}

void Collectives::monitored_barrier(const CallOptions& options) {
  const Capabilities& able = state_.capabilities;
  if (!able.has(Operation::kSend) || !able.has(Operation::kRecv) || !able.has(DType::kU8)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("monitored_barrier is made of sends and receives of bytes, which the "
                            "{} backend cannot do: use barrier",
                            able.name));
  }
  state_.check_alive();
  peal::monitored_barrier(*state_.backend, state_.options.name, state_.resolve(options.timeout));
}

}  // namespace peal
