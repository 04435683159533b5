// The collectives that give each rank a block.
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

/// An argument that only the root needs; other ranks may pass None.
Arrays at_root(const py::object& objects, Use use) {
  if (!objects.is_none()) return Arrays(objects, use);
  Arrays none(py::list(), use);
  none.form = BufferForm::kOne;
  return none;
}

/// The root's blocks as a list, from either form; an empty list on other ranks. So the other ranks
/// need not know the form. Errors: usage (the array cannot be cut into equal blocks).
template <class AnyBuffer>
std::vector<AnyBuffer> blocks_of(const Arrays& arrays, const ProcessGroup& group, Rank root) {
  if (group.rank() != root) return {};
  std::vector<AnyBuffer> blocks;
  if (arrays.form == BufferForm::kList || arrays.all.empty()) {
    for (const Array& array : arrays.all) blocks.push_back(array.buffer());
    return blocks;
  }
  const Buffer whole = arrays.one().buffer();
  const Elements each = whole.count / group.size();
  if (each * group.size() != whole.count) {
    throw Error(ErrorKind::kUsage,
                std::to_string(whole.count.value) +
                    " elements cannot be cut into equal blocks for " +
                    std::to_string(group.size()) + " ranks; pass `counts` for unequal blocks");
  }
  auto* const bytes = static_cast<std::byte*>(whole.data);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    blocks.push_back(Buffer(bytes + bytes_of(each * rank, whole.dtype).value, each, whole.dtype));
  }
  return blocks;
}

template <bool kAsync>
Result<kAsync> scatter(const PyGroup& self,
                       const py::object& input,
                       const py::object& output,
                       Rank root,
                       const Counts& counts,
                       Seconds timeout) {
  Arrays from = at_root(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  const Buffer out = single(to, "scatter").buffer();
  const auto in = counts ? from.const_buffers() : blocks_of<ConstBuffer>(from, self.get(), root);
  const ConstBuffers blocks(in, counts ? from.form : BufferForm::kList);
  const auto n = elements_of(counts);
  const BlockOptions options{.counts = n, .timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self,
                           list_of(std::move(from), std::move(to)),
                           &ProcessGroup::scatter,
                           &ProcessGroup::scatter_async,
                           blocks,
                           out,
                           root,
                           options);
}

template <bool kAsync>
Result<kAsync> gather(const PyGroup& self,
                      const py::object& input,
                      const py::object& output,
                      Rank root,
                      const Counts& counts,
                      Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to = at_root(output, Use::kWrite);
  const ConstBuffer in = single(from, "gather").buffer();
  const auto out = counts ? to.buffers() : blocks_of<Buffer>(to, self.get(), root);
  const Buffers blocks(out, counts ? to.form : BufferForm::kList);
  const auto n = elements_of(counts);
  const BlockOptions options{.counts = n, .timeout = timeout_of(timeout)};
  return carry_out<kAsync>(self,
                           list_of(std::move(from), std::move(to)),
                           &ProcessGroup::gather,
                           &ProcessGroup::gather_async,
                           in,
                           blocks,
                           root,
                           options);
}

/// For operations with an input and an output on every rank.
template <bool kAsync, class Run, class Start, class Options>
Result<kAsync> carry_out_both(const PyGroup& self,
                              const py::object& input,
                              const py::object& output,
                              Run run,
                              Start start,
                              const Options& options) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const ConstBuffers inputs(in, from.form);
  const Buffers outputs(out, to.form);
  return carry_out<kAsync>(
      self, list_of(std::move(from), std::move(to)), run, start, inputs, outputs, options);
}

template <bool kAsync>
Result<kAsync> all_gather(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& counts,
                          Seconds timeout) {
  const auto n = elements_of(counts);
  const BlockOptions options{.counts = n, .timeout = timeout_of(timeout)};
  return carry_out_both<kAsync>(
      self, input, output, &ProcessGroup::all_gather, &ProcessGroup::all_gather_async, options);
}

template <bool kAsync>
Result<kAsync> reduce_scatter(const PyGroup& self,
                              const py::object& input,
                              const py::object& output,
                              const py::object& op,
                              const Counts& counts,
                              Seconds timeout) {
  const auto n = elements_of(counts);
  const ReduceScatterOptions options{.op = op_of(op), .counts = n, .timeout = timeout_of(timeout)};
  return carry_out_both<kAsync>(self,
                                input,
                                output,
                                &ProcessGroup::reduce_scatter,
                                &ProcessGroup::reduce_scatter_async,
                                options);
}

template <bool kAsync>
Result<kAsync> all_to_all(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& to,
                          const Counts& from,
                          Seconds timeout) {
  const auto sent = elements_of(to);
  const auto received = elements_of(from);
  const AllToAllOptions options{.to = sent, .from = received, .timeout = timeout_of(timeout)};
  return carry_out_both<kAsync>(
      self, input, output, &ProcessGroup::all_to_all, &ProcessGroup::all_to_all_async, options);
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
