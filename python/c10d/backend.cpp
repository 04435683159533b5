#include "python/c10d/backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "peal/base/error.h"
#include "peal/system/per_process.h"

#include "python/common/leaving.h"
#include "python/common/processes.h"
#include "python/common/raised.h"
#include "python/common/signals.h"

namespace peal::python {

TorchBackend::TorchBackend(int rank, int size, Parts parts, StoreEnd store_end)
    : Backend(rank, size),
      parts_(std::move(parts)),
      store_end_(std::move(store_end)),
      timeout_ms_(parts_.options->timeout.count()),
      generation_(generation()) {
  init();
  if (!parts_.options->lazy) group();
}

TorchBackend::~TorchBackend() { TorchBackend::release_resources(); }

void TorchBackend::release_resources() {
  release_object(std::move(sparse_), generation_);
  release_object(std::move(group_), generation_);
  release_maker();
  parts_ = {};
  store_end_ = {};
}

void TorchBackend::release_maker() {
  if (!parts_.make_group) return;
  release_object(std::make_shared<MakeGroup>(std::exchange(parts_.make_group, nullptr)),
                 generation_);
}

ProcessGroupPtr TorchBackend::shared_group() {
  group();
  return group_;
}

ProcessGroup& TorchBackend::group() {
  check_not_forked(generation_, getGroupUid(), "torch.distributed.init_process_group");
  if (ProcessGroup* const there = made_.load(std::memory_order_acquire)) return *there;
  const std::lock_guard lock(making_);
  if (!group_) {
    group_ = interruptible([&] { return parts_.make_group(); });
    enlist(group_);
    made_.store(group_.get(), std::memory_order_release);
    release_maker();
  }
  return *group_;
}

SparseSum& TorchBackend::sparse(Timeout timeout) {
  ProcessGroup& all = group();
  if (SparseSum* const there = made_sparse_.load(std::memory_order_acquire)) return *there;
  const std::lock_guard lock(making_);
  if (!sparse_) {
    sparse_ = interruptible([&] { return std::make_shared<SparseSum>(all, timeout); });
    enlist(sparse_->group(), [made = std::weak_ptr(sparse_)](Deadline deadline) {
      if (const auto there = made.lock()) there->end(deadline);
    });
    made_sparse_.store(sparse_.get(), std::memory_order_release);
  }
  return *sparse_;
}

std::vector<ProcessGroup*> TorchBackend::made() const {
  std::vector<ProcessGroup*> groups;
  if (generation() != generation_) return groups;
  if (const SparseSum* const there = made_sparse_.load()) groups.push_back(there->group().get());
  if (ProcessGroup* const there = made_.load()) groups.push_back(there);
  return groups;
}

Timeout TorchBackend::resolve(std::chrono::milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout ? Timeout(timeout_ms_.load(std::memory_order_relaxed))
                                        : timeout;
}

c10::intrusive_ptr<c10d::Backend::Options> TorchBackend::getBackendOptions() {
  return options_for(nullptr);
}

c10::intrusive_ptr<TorchOptions> TorchBackend::options_for(
    const c10::intrusive_ptr<Options>& options) const {
  auto own = c10::make_intrusive<TorchOptions>();
  own->timeout = options ? options->timeout : resolve(c10d::kUnsetTimeout);
  const auto* given = dynamic_cast<const TorchOptions*>(options.get());
  own->lazy = given != nullptr ? given->lazy : parts_.options->lazy;
  return own;
}

void TorchBackend::setTimeout(std::chrono::milliseconds timeout) { timeout_ms_ = timeout.count(); }

c10::intrusive_ptr<c10d::Backend> TorchBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end()) return nullptr;
  const int rank = static_cast<int>(self - ranks.begin());
  const int size = static_cast<int>(ranks.size());
  // The parent group may not be made yet, and making it would need all its ranks.
  if (is_lazy()) return meet_anew(store, rank, size, options);
  group();
  Parts parts = {store, options_for(options), nullptr, parts_.meet_in};
  parts.make_group = [parent = group_, ranks, timeout = parts.options->timeout] {
    return parent->new_group(ranks, timeout);
  };
  return c10::make_intrusive<TorchBackend>(rank, size, std::move(parts));
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::meet_anew(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const c10::intrusive_ptr<Options>& options) {
  Parts parts = {store, options_for(options), nullptr, parts_.meet_in};
  parts.make_group =
      [store, rank, size, meet_in = parts_.meet_in, timeout = parts.options->timeout] {
        return meet_in(store, rank, size, timeout);
      };
  return c10::make_intrusive<TorchBackend>(rank, size, std::move(parts));
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const c10::intrusive_ptr<Options>& options,
                                                      const int& rank,
                                                      const int& size) {
  return meet_anew(store, rank, size, options);
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::shrink(const std::vector<std::int64_t>& without,
                                                       int,
                                                       const c10::intrusive_ptr<Options>& options) {
  int before = 0;
  int left = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (std::find(without.begin(), without.end(), rank) != without.end()) continue;
    if (rank < rank_) ++before;
    ++left;
  }
  const bool stays = std::find(without.begin(), without.end(), rank_) == without.end();
  TORCH_CHECK(stays,
              "shrink: rank ",
              rank_,
              " is in the list of excluded ranks: only the remaining ranks call shrink");
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      c10::str("shrunk/", shrunk_.fetch_add(1)), parts_.store);
  return meet_anew(store, before, left, options);
}

void TorchBackend::abort() {
  for (ProcessGroup* const one : made()) one->abort("torch.distributed's abort");
}

// Rank 0 closes torch's store after this. A rank that returned earlier and used the store again
// would lose the connection.
void TorchBackend::shutdown() {
  if (generation() != generation_) return;
  const NormalLeave leaving;
  if (!made().empty()) leave();
  store_end_.wait();
}

// If a Python exception passes through, the peers first receive its text. After an exception or a
// failed exit, the rank waits at most a second for operations in flight (leave_in_haste).
void TorchBackend::leave() {
  const Raised raised = handled_exception();
  if (raised.words) {
    for (ProcessGroup* const one : made()) one->abort_by_exception(*raised.words);
  }
  if (raised.words || raised.is_failed_exit) {
    for (ProcessGroup* const one : made()) leave_in_haste(*one);
    return;
  }
  check_may_wait_for_threads("destroy_process_group");
  interruptible([&] { leave_normally(Deadline::after(resolve(c10d::kUnsetTimeout))); });
}

// Leaves every group, even if leaving another one fails. Ignores all errors but timeouts: a failed
// group has ended anyway.
void TorchBackend::leave_normally(Deadline deadline) {
  std::optional<Error> late;
  if (SparseSum* const sums = made_sparse_.load(); sums != nullptr && !sums->drain(deadline)) {
    late = Error(ErrorKind::kTimeout,
                 "destroy_process_group: a sum of sparse tensors has not ended in time and fails");
  }
  for (ProcessGroup* const one : made()) {
    try {
      one->destroy(has_pending_exception() ? Timeout(0) : deadline.left());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kTimeout && !late) late = error;
    }
  }
  if (late) throw Error(*late);
}

void TorchBackend::startCoalescing() {
  is_coalescing_ = true;
  coalesced_.clear();
}

TorchBackend::WorkRef TorchBackend::endCoalescing() {
  is_coalescing_ = false;
  return c10::make_intrusive<CoalescedWork>(rank_, std::exchange(coalesced_, {}));
}

}  // namespace peal::python
