// The collectives on whole arrays.
#include <pybind11/stl.h>

#include "python/core/operations.h"

namespace peal::python {
namespace {

using Use = Array::Use;

template <bool kAsync>
Result<kAsync> broadcast(const PyGroup& self, const py::object& data, Rank root, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto buffers = arrays.buffers();
  const CallOptions options{.timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self,
                           list_of(std::move(arrays)),
                           &ProcessGroup::broadcast,
                           &ProcessGroup::broadcast_async,
                           buffers,
                           root,
                           options);
}

template <bool kAsync>
Result<kAsync> all_reduce(const PyGroup& self,
                          const py::object& data,
                          const py::object& op,
                          Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto buffers = arrays.buffers();
  const ReduceOptions options{.op = op_of(op), .timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self,
                           list_of(std::move(arrays)),
                           &ProcessGroup::all_reduce,
                           &ProcessGroup::all_reduce_async,
                           buffers,
                           options);
}

template <bool kAsync>
Result<kAsync> reduce(
    const PyGroup& self, const py::object& data, Rank root, const py::object& op, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto buffers = arrays.buffers();
  const ReduceOptions options{.op = op_of(op), .timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self,
                           list_of(std::move(arrays)),
                           &ProcessGroup::reduce,
                           &ProcessGroup::reduce_async,
                           buffers,
                           root,
                           options);
}

template <bool kAsync>
Result<kAsync> barrier(const PyGroup& self, Seconds timeout) {
  const CallOptions options{.timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self, {}, &ProcessGroup::barrier, &ProcessGroup::barrier_async, options);
}

bool should_stop(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  return self.run([&](ProcessGroup& g) { return g.should_stop(t); });
}

void monitored_barrier(const PyGroup& self, Seconds timeout) {
  const CallOptions options{.timeout = timeout_of(timeout)};
  self.run([&](ProcessGroup& g) { g.monitored_barrier(options); });
}

}  // namespace

void bind_collectives(GroupClass& group) {
  const auto data = py::arg("data");
  const auto root = py::arg("root");
  const auto op = py::arg("op") = ReduceOp::kSum;
  bind_both(group, "broadcast", &broadcast<false>, &broadcast<true>, docs::kBroadcast, data, root);
  bind_both(group, "all_reduce", &all_reduce<false>, &all_reduce<true>, docs::kAllReduce, data, op);
  bind_both(group, "reduce", &reduce<false>, &reduce<true>, docs::kReduce, data, root, op);
  bind_both(group, "barrier", &barrier<false>, &barrier<true>, docs::kBarrier);
  group.def("should_stop", &should_stop, py::kw_only(), timeout_argument(), docs::kShouldStop);
  group.def("monitored_barrier",
            &monitored_barrier,
            py::kw_only(),
            timeout_argument(),
            docs::kMonitoredBarrier);
}

}  // namespace peal::python
