#include "python/hvd/handles.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/system/per_process.h"

#include "python/common/signals.h"

namespace peal::python {
namespace {

struct Handles {
  std::unordered_map<std::int64_t, Started> by_number;
  std::int64_t next = 0;
};

Guarded<Handles>& handles() {
  static constinit PerProcess<Guarded<Handles>> own;
  return own.get();
}

}  // namespace

Result wait_for_result(const Started& started) {
  const hvd::Tensors& results =
      interruptible([&]() -> const hvd::Tensors& { return started.pending->wait(); });
  switch (started.returns) {
    case Started::Returns::kTensor:
      return results.front();
    case Started::Returns::kList:
      return results;
    case Started::Returns::kPair:
      break;
  }
  return Pair{results[0], started.device ? results[1].to(*started.device) : results[1]};
}

std::int64_t keep_handle(Started started) {
  return handles().with([&](Handles& all) {
    all.by_number.emplace(all.next, std::move(started));
    return all.next++;
  });
}

bool poll_handle(std::int64_t handle) {
  const hvd::PendingPtr pending = handles().with([&](const Handles& all) {
    const auto found = all.by_number.find(handle);
    return found == all.by_number.end() ? nullptr : found->second.pending;
  });
  if (pending) return interruptible([&] { return pending->poll(); });
  throw Error(ErrorKind::kUsage,
              "Handle " + std::to_string(handle) + " was not created or has been cleared.");
}

std::optional<Result> synchronize_handle(std::int64_t handle) {
  const auto taken = handles().with([&](Handles& all) -> std::optional<Started> {
    auto node = all.by_number.extract(handle);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  });
  if (!taken) return std::nullopt;
  return wait_for_result(*taken);
}

void forget_handles() {
  // Destroyed without the lock.
  const auto all = handles().with([](Handles& now) { return std::exchange(now.by_number, {}); });
}

}  // namespace peal::python
