// Messages between two ranks.
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"

#include "python/core/operations.h"

namespace peal::python {
namespace {

using Use = Array::Use;

void send(const PyGroup& self, const py::object& data, Rank to, std::int32_t tag, Seconds timeout) {
  const Array array(data, Use::kRead);
  const MessageOptions options{.tag = Tag{tag}, .timeout = timeout_of(timeout)};
  self.run([&](ProcessGroup& g) { g.send(array.buffer(), to, options); });
}

Rank recv(
    const PyGroup& self, const py::object& data, Rank source, std::int32_t tag, Seconds timeout) {
  const Array array(data, Use::kWrite);
  const MessageOptions options{.tag = Tag{tag}, .timeout = timeout_of(timeout)};
  return self.run([&](ProcessGroup& g) { return g.recv(array.buffer(), source, options); });
}

PyWork isend(
    const PyGroup& self, const py::object& data, Rank to, std::int32_t tag, Seconds timeout) {
  Arrays arrays(data, Use::kRead);
  const ConstBuffer buffer = single(arrays, "isend").buffer();
  const MessageOptions options{.tag = Tag{tag}, .timeout = timeout_of(timeout)};
  return self.start(list_of(std::move(arrays)),
                    [&](ProcessGroup& g) { return g.isend(buffer, to, options); });
}

PyWork irecv(
    const PyGroup& self, const py::object& data, Rank source, std::int32_t tag, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const Buffer buffer = single(arrays, "irecv").buffer();
  const MessageOptions options{.tag = Tag{tag}, .timeout = timeout_of(timeout)};
  return self.start(list_of(std::move(arrays)),
                    [&](ProcessGroup& g) { return g.irecv(buffer, source, options); });
}

PyWork batch_isend_irecv(const PyGroup& self, const py::iterable& batch, Seconds timeout) {
  std::vector<Arrays> held;
  std::vector<PointToPoint> messages;
  for (const py::handle item : batch) {
    const auto parts = item.cast<py::tuple>();
    if (parts.size() != 3 && parts.size() != 4) {
      throw Error(ErrorKind::kUsage,
                  "batch_isend_irecv takes tuples (\"send\" or \"recv\", array, peer[, tag])");
    }
    const auto what = parts[0].cast<std::string>();
    if (what != "send" && what != "recv") {
      throw Error(ErrorKind::kUsage,
                  "batch_isend_irecv: \"" + what + "\" is neither send nor recv");
    }
    const bool sends = what == "send";
    held.emplace_back(parts[1], sends ? Use::kRead : Use::kWrite);
    PointToPoint message;
    message.kind = sends ? PointToPoint::Kind::kSend : PointToPoint::Kind::kRecv;
    message.buffer = single(held.back(), "batch_isend_irecv").buffer();
    message.peer = parts[2].cast<Rank>();
    if (parts.size() == 4) message.tag = Tag{parts[3].cast<std::int32_t>()};
    messages.push_back(message);
  }
  const CallOptions options{.timeout = timeout_of(timeout)};
  return self.start(std::move(held),
                    [&](ProcessGroup& g) { return g.batch_isend_irecv(messages, options); });
}

}  // namespace

void bind_messages(GroupClass& group) {
  const py::kw_only named;
  const auto timeout = timeout_argument();
  const auto data = py::arg("data");
  const auto to = py::arg("to");
  const auto source = py::arg("source") = kAnySource;
  const auto tag = py::arg("tag") = 0;
  group.def("send", &send, data, to, tag, named, timeout, docs::kSend)
      .def("recv", &recv, data, source, tag, named, timeout, docs::kRecv)
      .def("isend", &isend, data, to, tag, named, timeout, docs::kIsend)
      .def("irecv", &irecv, data, source, tag, named, timeout, docs::kIrecv)
      .def("batch_isend_irecv",
           &batch_isend_irecv,
           py::arg("batch"),
           named,
           timeout,
           docs::kBatchIsendIrecv);
}

}  // namespace peal::python
