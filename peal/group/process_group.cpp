#include "peal/group/process_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/group/call.h"
#include "peal/group/monitored_barrier.h"

namespace peal {

struct ProcessGroup::Impl {
  Impl(std::unique_ptr<Backend> b, Options o) : backend(std::move(b)), options(std::move(o)) {}

  /// Checks the arguments by `fill(call)` and carries the operation out.
  template <class Fill>
  Rank run(Timeout timeout, Fill&& fill) {
    Call call(backend->rank(), backend->size(), backend->capabilities());
    fill(call);
    check_alive();
    return backend->run(call.request(), resolve(timeout));
  }

  template <class Fill>
  WorkPtr start(Timeout timeout, Fill&& fill) {
    Call call(backend->rank(), backend->size(), backend->capabilities());
    fill(call);
    check_alive();
    return backend->start({&call.request(), 1}, resolve(timeout));
  }

  Timeout resolve(Timeout timeout) const {
    return timeout == kGroupTimeout ? options.timeout : timeout;
  }

  void check_alive() const {
    if (destroyed.load(std::memory_order_relaxed)) {
      throw Error(ErrorKind::kUsage, fmt::format("the group {} has been destroyed", options.name));
    }
  }

  std::unique_ptr<Backend> backend;
  Options options;
  std::atomic<bool> destroyed{false};
  /// How many groups were made of each list of ranks: their members agree on the number.
  Guarded<std::map<std::vector<Rank>, int>> groups_made;
};

ProcessGroup::ProcessGroup(std::unique_ptr<Backend> backend, Options options)
    : impl_(std::make_unique<Impl>(std::move(backend), std::move(options))) {
  auto& ranks = impl_->options.global_ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
}

ProcessGroup::~ProcessGroup() {
  try {
    destroy(std::chrono::seconds(1));
  } catch (const std::exception&) {
    // Whoever wants to know calls destroy().
  }
}

Rank ProcessGroup::rank() const { return impl_->backend->rank(); }
int ProcessGroup::size() const { return impl_->backend->size(); }
const std::string& ProcessGroup::name() const { return impl_->options.name; }
Timeout ProcessGroup::timeout() const { return impl_->options.timeout; }
const Capabilities& ProcessGroup::capabilities() const { return impl_->backend->capabilities(); }

Rank ProcessGroup::global_rank(Rank rank) const {
  if (rank < 0 || rank >= size()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("rank {} is not in the group {} of {} ranks", rank, name(), size()));
  }
  return impl_->options.global_ranks[static_cast<std::size_t>(rank)];
}

// ---- point to point -----------------------------------------------------------------------------

void ProcessGroup::send(ConstBuffer data, Rank to, Tag tag, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.send(data, to, tag); });
}

Rank ProcessGroup::recv(Buffer data, Rank from, Tag tag, Timeout timeout) {
  return impl_->run(timeout, [&](Call& call) { call.recv(data, from, tag); });
}

WorkPtr ProcessGroup::isend(ConstBuffer data, Rank to, Tag tag, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.send(data, to, tag); });
}

WorkPtr ProcessGroup::irecv(Buffer data, Rank from, Tag tag, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.recv(data, from, tag); });
}

WorkPtr ProcessGroup::batch_isend_irecv(std::span<const PointToPoint> batch, Timeout timeout) {
  impl_->check_alive();
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<Request> requests;
  for (const PointToPoint& one : batch) {
    calls.push_back(std::make_unique<Call>(rank(), size(), capabilities()));
    if (one.kind == PointToPoint::Kind::kSend) {
      calls.back()->send(one.buffer, one.peer, one.tag);
    } else {
      calls.back()->recv(one.buffer, one.peer, one.tag);
    }
    requests.push_back(calls.back()->request());
  }
  return impl_->backend->start(requests, impl_->resolve(timeout));
}

// ---- one buffer, or several as one

void ProcessGroup::broadcast(Buffer data, Rank root, Timeout timeout) {
  broadcast({&data, 1}, root, timeout);
}
WorkPtr ProcessGroup::broadcast_async(Buffer data, Rank root, Timeout timeout) {
  return broadcast_async({&data, 1}, root, timeout);
}
void ProcessGroup::all_reduce(Buffer data, ReduceOp op, Timeout timeout) {
  all_reduce({&data, 1}, op, timeout);
}
WorkPtr ProcessGroup::all_reduce_async(Buffer data, ReduceOp op, Timeout timeout) {
  return all_reduce_async({&data, 1}, op, timeout);
}
void ProcessGroup::reduce(Buffer data, Rank root, ReduceOp op, Timeout timeout) {
  reduce({&data, 1}, root, op, timeout);
}
WorkPtr ProcessGroup::reduce_async(Buffer data, Rank root, ReduceOp op, Timeout timeout) {
  return reduce_async({&data, 1}, root, op, timeout);
}

void ProcessGroup::broadcast(std::span<const Buffer> data, Rank root, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.broadcast(data, root); });
}
WorkPtr ProcessGroup::broadcast_async(std::span<const Buffer> data, Rank root, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.broadcast(data, root); });
}
void ProcessGroup::all_reduce(std::span<const Buffer> data, ReduceOp op, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_reduce(data, op); });
}
WorkPtr ProcessGroup::all_reduce_async(std::span<const Buffer> data, ReduceOp op, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_reduce(data, op); });
}
void ProcessGroup::reduce(std::span<const Buffer> data, Rank root, ReduceOp op, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.reduce(data, root, op); });
}
WorkPtr ProcessGroup::reduce_async(std::span<const Buffer> data,
                                   Rank root,
                                   ReduceOp op,
                                   Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.reduce(data, root, op); });
}

void ProcessGroup::all_gather(std::span<const ConstBuffer> in,
                              std::span<const Buffer> out,
                              Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_gather(in, out); });
}
WorkPtr ProcessGroup::all_gather_async(std::span<const ConstBuffer> in,
                                       std::span<const Buffer> out,
                                       Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_gather(in, out); });
}
void ProcessGroup::reduce_scatter(std::span<const ConstBuffer> in,
                                  std::span<const Buffer> out,
                                  ReduceOp op,
                                  Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.reduce_scatter(in, out, op); });
}
WorkPtr ProcessGroup::reduce_scatter_async(std::span<const ConstBuffer> in,
                                           std::span<const Buffer> out,
                                           ReduceOp op,
                                           Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.reduce_scatter(in, out, op); });
}

// ---- a block for each rank

void ProcessGroup::scatter(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.scatter(in, out, root, counts); });
}
WorkPtr ProcessGroup::scatter_async(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.scatter(in, out, root, counts); });
}
void ProcessGroup::gather(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.gather(in, out, root, counts); });
}
WorkPtr ProcessGroup::gather_async(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.gather(in, out, root, counts); });
}
void ProcessGroup::all_gather(ConstBuffer in,
                              Buffer out,
                              std::span<const Elements> counts,
                              Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_gather(in, out, counts); });
}
WorkPtr ProcessGroup::all_gather_async(ConstBuffer in,
                                       Buffer out,
                                       std::span<const Elements> counts,
                                       Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_gather(in, out, counts); });
}
void ProcessGroup::reduce_scatter(
    ConstBuffer in, Buffer out, ReduceOp op, std::span<const Elements> counts, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.reduce_scatter(in, out, op, counts); });
}
WorkPtr ProcessGroup::reduce_scatter_async(
    ConstBuffer in, Buffer out, ReduceOp op, std::span<const Elements> counts, Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.reduce_scatter(in, out, op, counts); });
}
void ProcessGroup::all_to_all(ConstBuffer in,
                              Buffer out,
                              std::span<const Elements> to,
                              std::span<const Elements> from,
                              Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_to_all(in, out, to, from); });
}
WorkPtr ProcessGroup::all_to_all_async(ConstBuffer in,
                                       Buffer out,
                                       std::span<const Elements> to,
                                       std::span<const Elements> from,
                                       Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_to_all(in, out, to, from); });
}

// ---- a buffer for each rank

void ProcessGroup::scatter(std::span<const ConstBuffer> in,
                           Buffer out,
                           Rank root,
                           Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.scatter_list(in, out, root); });
}
WorkPtr ProcessGroup::scatter_async(std::span<const ConstBuffer> in,
                                    Buffer out,
                                    Rank root,
                                    Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.scatter_list(in, out, root); });
}
void ProcessGroup::gather(ConstBuffer in, std::span<const Buffer> out, Rank root, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.gather_list(in, out, root); });
}
WorkPtr ProcessGroup::gather_async(ConstBuffer in,
                                   std::span<const Buffer> out,
                                   Rank root,
                                   Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.gather_list(in, out, root); });
}
void ProcessGroup::all_gather(ConstBuffer in, std::span<const Buffer> out, Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_gather_list(in, out); });
}
WorkPtr ProcessGroup::all_gather_async(ConstBuffer in,
                                       std::span<const Buffer> out,
                                       Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_gather_list(in, out); });
}
void ProcessGroup::reduce_scatter(std::span<const ConstBuffer> in,
                                  Buffer out,
                                  ReduceOp op,
                                  Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.reduce_scatter_list(in, out, op); });
}
WorkPtr ProcessGroup::reduce_scatter_async(std::span<const ConstBuffer> in,
                                           Buffer out,
                                           ReduceOp op,
                                           Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.reduce_scatter_list(in, out, op); });
}
void ProcessGroup::all_to_all(std::span<const ConstBuffer> in,
                              std::span<const Buffer> out,
                              Timeout timeout) {
  impl_->run(timeout, [&](Call& call) { call.all_to_all_list(in, out); });
}
WorkPtr ProcessGroup::all_to_all_async(std::span<const ConstBuffer> in,
                                       std::span<const Buffer> out,
                                       Timeout timeout) {
  return impl_->start(timeout, [&](Call& call) { call.all_to_all_list(in, out); });
}

// ---- meeting

void ProcessGroup::barrier(Timeout timeout) {
  impl_->run(timeout, [](Call& call) { call.barrier(); });
}
WorkPtr ProcessGroup::barrier_async(Timeout timeout) {
  return impl_->start(timeout, [](Call& call) { call.barrier(); });
}
void ProcessGroup::monitored_barrier(Timeout timeout) {
  impl_->check_alive();
  peal::monitored_barrier(*impl_->backend, name(), impl_->resolve(timeout));
}

// ---- groups

ProcessGroupPtr ProcessGroup::new_group(std::span<const Rank> ranks, Timeout timeout) {
  impl_->check_alive();
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::kUsage, fmt::format("new_group of {}: {}", name(), why));
  };
  std::vector<Rank> members(ranks.begin(), ranks.end());
  std::vector<Rank> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw refuse(fmt::format("a rank is given twice in {}", fmt::join(members, ",")));
  }
  Options options;
  options.timeout = impl_->options.timeout;
  for (const Rank member : members) options.global_ranks.push_back(global_rank(member));
  if (!std::binary_search(sorted.begin(), sorted.end(), rank())) {
    throw refuse(fmt::format(
        "rank {} is not among {}, and only members may call it", rank(), fmt::join(members, ",")));
  }
  const int serial = impl_->groups_made.with([&](auto& made) { return made[members]++; });
  options.name = fmt::format("{}/{}.{}", name(), fmt::join(members, ","), serial);
  auto backend = impl_->backend->subgroup(members, options.name, impl_->resolve(timeout));
  return std::make_shared<ProcessGroup>(std::move(backend), std::move(options));
}

ProcessGroupPtr ProcessGroup::split(int color, int key, Timeout timeout) {
  if (color < 0 && color != kNoColor) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("split of {}: color {} is negative; kNoColor joins no group", name(), color));
  }
  const std::array<std::int32_t, 2> own = {color, key};
  std::vector<std::int32_t> all(own.size() * static_cast<std::size_t>(size()));
  all_gather(ConstBuffer(std::span(own)), Buffer(all), std::span<const Elements>{}, timeout);
  if (color == kNoColor) return nullptr;

  std::vector<std::pair<std::int32_t, Rank>> members;  // (key, rank)
  for (Rank r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r) * own.size();
    if (all[at] == color) members.emplace_back(all[at + 1], r);
  }
  std::sort(members.begin(), members.end());
  std::vector<Rank> ranks;
  for (const auto& member : members) ranks.push_back(member.second);
  return new_group(ranks, timeout);
}

// ---- memory and end

Memory ProcessGroup::allocate(Bytes size) {
  if (size.value < 0) {
    throw Error(ErrorKind::kUsage, fmt::format("allocate of {} bytes", size.value));
  }
  impl_->check_alive();
  return impl_->backend->allocate(size);
}

void ProcessGroup::abort(const std::string& reason) {
  impl_->backend->abort(Error(
      ErrorKind::kPeerLost,
      fmt::format("the group {} was aborted by rank {}: {}", name(), global_rank(rank()), reason)));
}

void ProcessGroup::destroy(Timeout timeout) {
  if (impl_->destroyed.exchange(true)) return;
  impl_->backend->shutdown(Deadline::after(impl_->resolve(timeout)));
}

}  // namespace peal
