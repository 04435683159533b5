// peal._c10d: the backend "peal" of torch.distributed, which peal/_torch.py registers, and the
// reducer of peal/_ddp.py.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/init/init.h"
#include "peal/store/prefix_store.h"
#include "peal/store/sealed_store.h"
#include "peal/system/per_process.h"

#include "python/c10d/backend.h"
#include "python/c10d/reducer.h"
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

/// Counts this rank's rendezvous in the store. A rank that meets again may still find the store of
/// the previous rendezvous, which rank 0 is about to close.
std::int64_t count_meeting(store::Store& store, int rank) {
  try {
    return store.add("peal/times/" + std::to_string(rank), 1);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUsage) throw;  // the count lacks the seal of this job's secret
    throw Error(error.kind(),
                std::string(error.message()) +
                    ". If rank 0 serves the store, rank 0 may have left: for several process "
                    "groups in turn, call dist.barrier() before dist.destroy_process_group()");
  }
}

/// The store of one rendezvous, with its own keys: torch may use the same keys again when the same
/// processes meet again. This function seals the count; `init_process_group` seals the ranks'
/// entries.
std::shared_ptr<store::Store> store_of_meeting(const StoreRef& store, int rank, Timeout timeout) {
  const std::shared_ptr<store::Store> whole = make_torch_store(store);
  const auto sealed =
      store::make_sealed_store(whole, read_config(process_environment()).config.secret, timeout);
  const std::int64_t time = count_meeting(*sealed, rank);
  return store::make_prefix_store(whole, "peal/" + std::to_string(time));
}

/// The members of a rendezvous.
enum class Members : unsigned char {
  kWholeJob,
  kPartOfJob,
  kOthers,  // perhaps from another launcher, because groups can be merged
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

/// The default group. Subgroups made from it need no rendezvous in the store.
using World = std::optional<c10::weak_intrusive_ptr<TorchBackend>>;

Guarded<World>& world() {
  static constinit PerProcess<Guarded<World>> own;
  return own.get();
}

/// Null if this process is not in a default group.
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
    // A lazy default group may not be made yet, and making it would need ranks outside this group.
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
  module.doc() = "The backend \"peal\" of torch.distributed; see peal._torch.";
  remember_main_thread();
  generation();  // starts to count forks
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
  bind_reducer(module);
  module.def("tell_of_exception", &tell_all_of_exception, py::call_guard<WithoutGil>());
  module.def("leave_all", &leave_all, py::call_guard<WithoutGil>());
}

}  // namespace peal::python
