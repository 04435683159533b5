// The collectives on a block for each rank: for each the call, blocking or not, that the forms of
// its arguments ask for.
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"

#include "python/core/operations.h"

namespace peal::python {
namespace {

using Use = Array::Use;

std::vector<Elements> elements_of(const Counts& counts) {
  std::vector<Elements> elements;
  if (counts) {
    for (const std::int64_t count : *counts) elements.emplace_back(count);
  }
  return elements;
}

[[noreturn]] void refuse_counts(const char* operation) {
  throw Error(ErrorKind::kUsage,
              std::string(operation) +
                  ": counts cut one array into blocks; a list's arrays are the "
                  "blocks");
}

/// What ranks that are not the root need not give: None.
Arrays optional_arrays(const py::object& objects, Use use) {
  if (!objects.is_none()) return Arrays(objects, use);
  Arrays none(py::list(), use);
  none.is_list = false;
  return none;
}

/// One block for each rank at the root, whichever form it has them in, and none elsewhere: so that
/// no other rank need know the form. Errors: usage (not to be cut into equal blocks).
template <class AnyBuffer>
std::vector<AnyBuffer> blocks_of(const Arrays& arrays, const ProcessGroup& group, Rank root) {
  if (group.rank() != root) return {};
  std::vector<AnyBuffer> blocks;
  if (arrays.is_list || arrays.all.empty()) {
    for (const Array& array : arrays.all) blocks.push_back(array.buffer());
    return blocks;
  }
  const Buffer whole = arrays.one().buffer();
  const Elements each = whole.count / group.size();
  if (each * group.size() != whole.count) {
    throw Error(ErrorKind::kUsage,
                std::to_string(whole.count.value) +
                    " elements cannot be cut into equal blocks for " +
                    std::to_string(group.size()) + " ranks; `counts` cuts them otherwise");
  }
  auto* const bytes = static_cast<std::byte*>(whole.data);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    blocks.push_back(Buffer(bytes + bytes_of(each * rank, whole.dtype).value, each, whole.dtype));
  }
  return blocks;
}

/// A root's one array with a block for each rank; elsewhere nothing, of the same type.
template <class AnyBuffer>
AnyBuffer whole(const Arrays& arrays, DType dtype) {
  return arrays.all.empty() ? AnyBuffer(nullptr, Elements(0), dtype)
                            : AnyBuffer(arrays.one().buffer());
}

template <bool kAsync>
Result<kAsync> scatter(const PyGroup& self,
                       const py::object& input,
                       const py::object& output,
                       Rank root,
                       const Counts& counts,
                       Seconds timeout) {
  Arrays from = optional_arrays(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  const Buffer out = single(to, "scatter").buffer();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  if (from.is_list && counts) refuse_counts("scatter");
  const auto in =
      counts ? std::vector<ConstBuffer>() : blocks_of<ConstBuffer>(from, self.get(), root);
  const auto block = whole<ConstBuffer>(from, out.dtype);
  auto held = list_of(std::move(from), std::move(to));
  if (!counts) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.scatter(in, out, root, t); },
        [&](ProcessGroup& g) { return g.scatter_async(in, out, root, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.scatter(block, out, root, n, t); },
      [&](ProcessGroup& g) { return g.scatter_async(block, out, root, n, t); });
}

template <bool kAsync>
Result<kAsync> gather(const PyGroup& self,
                      const py::object& input,
                      const py::object& output,
                      Rank root,
                      const Counts& counts,
                      Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to = optional_arrays(output, Use::kWrite);
  const ConstBuffer in = single(from, "gather").buffer();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  if (to.is_list && counts) refuse_counts("gather");
  const auto out = counts ? std::vector<Buffer>() : blocks_of<Buffer>(to, self.get(), root);
  const auto block = whole<Buffer>(to, in.dtype);
  auto held = list_of(std::move(from), std::move(to));
  if (!counts) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.gather(in, out, root, t); },
        [&](ProcessGroup& g) { return g.gather_async(in, out, root, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.gather(in, block, root, n, t); },
      [&](ProcessGroup& g) { return g.gather_async(in, block, root, n, t); });
}

/// Three forms: array to array, array to a list of one array for each rank, list to list (several
/// as one operation).
template <bool kAsync>
Result<kAsync> all_gather(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& counts,
                          Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (from.is_list && !to.is_list) refuse_mix("all_gather");
  const bool several = from.is_list;
  const bool by_rank = to.is_list;
  if (by_rank && counts) refuse_counts("all_gather");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (several) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_gather(in, out, t); },
        [&](ProcessGroup& g) { return g.all_gather_async(in, out, t); });
  }
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_gather(in[0], out, t); },
        [&](ProcessGroup& g) { return g.all_gather_async(in[0], out, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.all_gather(in[0], out[0], n, t); },
      [&](ProcessGroup& g) { return g.all_gather_async(in[0], out[0], n, t); });
}

/// As all_gather, the other way.
template <bool kAsync>
Result<kAsync> reduce_scatter(const PyGroup& self,
                              const py::object& input,
                              const py::object& output,
                              const py::object& op,
                              const Counts& counts,
                              Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (to.is_list && !from.is_list) refuse_mix("reduce_scatter");
  const bool several = to.is_list;
  const bool by_rank = from.is_list;
  if (by_rank && counts) refuse_counts("reduce_scatter");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto n = elements_of(counts);
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (several) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.reduce_scatter(in, out, o, t); },
        [&](ProcessGroup& g) { return g.reduce_scatter_async(in, out, o, t); });
  }
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.reduce_scatter(in, out[0], o, t); },
        [&](ProcessGroup& g) { return g.reduce_scatter_async(in, out[0], o, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.reduce_scatter(in[0], out[0], o, n, t); },
      [&](ProcessGroup& g) { return g.reduce_scatter_async(in[0], out[0], o, n, t); });
}

template <bool kAsync>
Result<kAsync> all_to_all(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& to_counts,
                          const Counts& from_counts,
                          Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (from.is_list != to.is_list) refuse_mix("all_to_all");
  const bool by_rank = from.is_list;
  if (by_rank && (to_counts || from_counts)) refuse_counts("all_to_all");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto sent = elements_of(to_counts);
  const auto received = elements_of(from_counts);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_to_all(in, out, t); },
        [&](ProcessGroup& g) { return g.all_to_all_async(in, out, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.all_to_all(in[0], out[0], sent, received, t); },
      [&](ProcessGroup& g) { return g.all_to_all_async(in[0], out[0], sent, received, t); });
}

}  // namespace

void bind_blocks(GroupClass& group) {
  const auto in = py::arg("input");
  const auto out = py::arg("output");
  const auto root = py::arg("root");
  const auto op = py::arg("op") = ReduceOp::kSum;
  const auto counts = py::arg("counts") = py::none();
  const auto to = py::arg("to") = py::none();
  const auto from = py::arg("from_") = py::none();
  bind_both(
      group, "scatter", &scatter<false>, &scatter<true>, docs::kScatter, in, out, root, counts);
  bind_both(group, "gather", &gather<false>, &gather<true>, docs::kGather, in, out, root, counts);
  bind_both(group,
            "all_gather",
            &all_gather<false>,
            &all_gather<true>,
            docs::kAllGather,
            in,
            out,
            counts);
  bind_both(group,
            "reduce_scatter",
            &reduce_scatter<false>,
            &reduce_scatter<true>,
            docs::kReduceScatter,
            in,
            out,
            op,
            counts);
  bind_both(group,
            "all_to_all",
            &all_to_all<false>,
            &all_to_all<true>,
            docs::kAllToAll,
            in,
            out,
            to,
            from);
}

}  // namespace peal::python
