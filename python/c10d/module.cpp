// peal._c10d: torch.distributed's backend "peal", which peal/_torch.py registers.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/utils/pybind.h>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/per_process.h"
#include "peal/init/init.h"
#include "peal/store/prefix_store.h"
#include "peal/store/sealed_store.h"

#include "python/c10d/backend.h"
#include "python/c10d/store.h"
#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/leaving.h"
#include "python/common/reports.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

namespace py = pybind11;

using StoreRef = c10::intrusive_ptr<c10d::Store>;

/// How often this rank has come to the store. Who meets again may come to that of the meeting
/// before, which rank 0 is about to close.
std::int64_t count_meeting(store::Store& store, int rank) {
  try {
    return store.add("peal/times/" + std::to_string(rank), 1);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUsage) throw;  // the count does not bear the job's seal
    throw Error(error.kind(),
                std::string(error.message()) +
                    ". Where rank 0 serves it, that may have left: if ranks meet again, call "
                    "dist.barrier() before dist.destroy_process_group()");
  }
}

/// torch may use the same keys again when the same processes meet once more, so each meeting has
/// its own. The count is sealed here; `init_process_group` seals what the ranks say in the meeting.
std::shared_ptr<store::Store> store_of_meeting(const StoreRef& store, int rank, Timeout timeout) {
  const std::shared_ptr<store::Store> whole = make_torch_store(store);
  const auto sealed =
      store::make_sealed_store(whole, read_config(process_environment()).config.secret, timeout);
  const std::int64_t time = count_meeting(*sealed, rank);
  return store::make_prefix_store(whole, "peal/" + std::to_string(time));
}

/// Which ranks meet.
enum class Members : unsigned char {
  kWholeJob,
  kPartOfJob,
  kOthers,  // perhaps processes that this launcher has not started: groups can be merged
};

ProcessGroupPtr meet(const StoreRef& store, int rank, int size, Timeout timeout, Members members) {
  InitOptions options;
  options.store = store_of_meeting(store, rank, timeout);
  options.rank = rank;
  options.world_size = size;
  options.timeout = timeout;
  options.is_whole_job = members == Members::kWholeJob;
  options.is_of_job = members != Members::kOthers;
  options.report = report_on_stderr();
  options.interrupt = check_interrupts;
  return init_process_group(options);
}

/// The default group, of which others are made: they need no meeting of their own then.
using World = std::optional<c10::weak_intrusive_ptr<TorchBackend>>;

Guarded<World>& world() {
  static constinit PerProcess<Guarded<World>> own;
  return own.get();
}

/// Null where this process is in none.
c10::intrusive_ptr<TorchBackend> default_group() {
  return world().with([](const World& world) {
    return world ? world->lock() : c10::intrusive_ptr<TorchBackend>();
  });
}

c10::intrusive_ptr<c10d::Backend> create(const StoreRef& store,
                                         int rank,
                                         int size,
                                         double timeout_s,
                                         const std::vector<std::int64_t>& global_ranks,
                                         bool lazy,
                                         bool store_ends_with_rank_0) {
  auto options = c10::make_intrusive<TorchOptions>();
  options->timeout = Timeout(static_cast<std::int64_t>(std::ceil(timeout_s * 1000.0)));
  options->lazy = lazy;
  const bool is_world = global_ranks.empty();
  TorchBackend::Parts parts;
  parts.store = store;
  parts.options = options;
  parts.meet_in = [](const StoreRef& where, int r, int n, Timeout t) {
    return meet(where, r, n, t, Members::kOthers);
  };
  parts.make_group = [=, timeout = options->timeout] {
    const auto whole = is_world ? nullptr : default_group();
    // Ranks of a lazy whole that are not in this group would have to come if it were made here.
    if (!whole || whole->is_lazy()) {
      const auto members = is_world ? Members::kWholeJob : Members::kPartOfJob;
      return meet(store, rank, size, timeout, members);
    }
    const std::vector<Rank> members(global_ranks.begin(), global_ranks.end());
    return whole->shared_group()->new_group(members, timeout);
  };
  const bool outlives_store = is_world && store_ends_with_rank_0 && rank != 0;
  const auto backend = c10::make_intrusive<TorchBackend>(
      rank, size, std::move(parts), outlives_store ? StoreEnd(*store) : StoreEnd());
  if (is_world) world().with([&](World& world) { world.emplace(backend); });
  return backend;
}

}  // namespace

PYBIND11_MODULE(_c10d, module) {
  module.doc() = "torch.distributed's backend \"peal\"; see peal._torch.";
  remember_main_thread();
  generation();  // counts from here on
  translate_errors_to("peal._torch", "DistError");
  module.def("create",
             &create,
             py::arg("store"),
             py::arg("rank"),
             py::arg("size"),
             py::arg("timeout_s"),
             py::arg("global_ranks"),
             py::kw_only(),
             py::arg("lazy"),
             py::arg("store_ends_with_rank_0"),
             py::call_guard<WithoutGil>());
  module.def("tell_of_exception", &tell_all_of_exception, py::call_guard<WithoutGil>());
  module.def("leave_all", &leave_all, py::call_guard<WithoutGil>());
}

}  // namespace peal::python
