// The collectives on whole arrays.
#include <pybind11/stl.h>

#include "python/core/operations.h"

namespace peal::python {
namespace {

using Use = Array::Use;

template <bool kAsync>
Result<kAsync> broadcast(const PyGroup& self, const py::object& data, Rank root, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.broadcast(all, root, t); },
      [&](ProcessGroup& g) { return g.broadcast_async(all, root, t); });
}

template <bool kAsync>
Result<kAsync> all_reduce(const PyGroup& self,
                          const py::object& data,
                          const py::object& op,
                          Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.all_reduce(all, o, t); },
      [&](ProcessGroup& g) { return g.all_reduce_async(all, o, t); });
}

template <bool kAsync>
Result<kAsync> reduce(
    const PyGroup& self, const py::object& data, Rank root, const py::object& op, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.reduce(all, root, o, t); },
      [&](ProcessGroup& g) { return g.reduce_async(all, root, o, t); });
}

template <bool kAsync>
Result<kAsync> barrier(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      {},
      [&](ProcessGroup& g) { g.barrier(t); },
      [&](ProcessGroup& g) { return g.barrier_async(t); });
}

void monitored_barrier(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  self.run([&](ProcessGroup& g) { g.monitored_barrier(t); });
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
  group.def("monitored_barrier",
            &monitored_barrier,
            py::kw_only(),
            timeout_argument(),
            docs::kMonitoredBarrier);
}

}  // namespace peal::python
