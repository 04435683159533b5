// Messages between two ranks.
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "python/c10d/backend.h"
#include "python/c10d/carry_out.h"

namespace peal::python {

using c10d::OpType;

TorchBackend::WorkRef TorchBackend::send(Tensors& data, int to, int tag) {
  c10d::assertSingleElement(Invalid{"send"}, data);
  const Timeout timeout = resolve(c10d::kUnsetTimeout);
  const auto start = [=](ProcessGroup& g, const TensorOperands& o) {
    return g.isend(o.in[0].buffer(), to, {.tag = Tag{tag}, .timeout = timeout});
  };
  return carry_out(
      {{OpType::SEND, "peal:send"}, timeout, true},
      {operands(data, Use::kRead), {}},
      [] { return Results(); },
      start,
      start);
}

TorchBackend::WorkRef TorchBackend::receive(Tensors& data, Rank from, int tag, OpType type) {
  c10d::assertSingleElement(Invalid{"recv"}, data);
  const Timeout timeout = resolve(c10d::kUnsetTimeout);
  const auto start = [=](ProcessGroup& g, const TensorOperands& o) {
    return g.irecv(o.out[0].buffer(), from, {.tag = Tag{tag}, .timeout = timeout});
  };
  const char* const title = type == OpType::RECVANYSOURCE ? "peal:recvAnySource" : "peal:recv";
  return carry_out(
      {{type, title}, timeout, true},
      {{}, operands(data, Use::kWrite)},
      [&] { return Results{data}; },
      start,
      start);
}

TorchBackend::WorkRef TorchBackend::recv(Tensors& data, int from, int tag) {
  return receive(data, from, tag, OpType::RECV);
}

TorchBackend::WorkRef TorchBackend::recvAnysource(Tensors& data, int tag) {
  return receive(data, kAnySource, tag, OpType::RECVANYSOURCE);
}

}  // namespace peal::python
