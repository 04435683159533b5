#include "python/c10d/store_end.h"

#include <poll.h>

#include <chrono>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/resolve.h"
#include "peal/net/socket.h"

namespace peal::python {
namespace {

constexpr auto kToConnect = std::chrono::seconds(1);
/// Rank 0 needs some milliseconds, ten if cores are busy, more if rank 0 gets no core.
constexpr auto kToEnd = std::chrono::milliseconds(250);

Fd connect_to_server_of(const c10d::TCPStore& store) {
  const Deadline deadline = Deadline::after(kToConnect);
  for (const net::Address& address : net::resolve(store.getHost(), store.getPort(), deadline)) {
    try {
      return net::connect_to(address, deadline);
    } catch (const Error&) {  // try the next address
    }
  }
  return {};
}

}  // namespace

StoreEnd::StoreEnd(c10d::Store& store) {
  auto* const prefixed = dynamic_cast<c10d::PrefixStore*>(&store);
  const auto whole = prefixed != nullptr ? prefixed->getUnderlyingNonPrefixStore() : nullptr;
  const auto* const served = dynamic_cast<c10d::TCPStore*>(whole ? whole.get() : &store);
  if (served == nullptr) return;
  try {
    connection_ = connect_to_server_of(*served);
  } catch (const Error&) {  // the host name no longer resolves
  }
}

void StoreEnd::wait() const {
  if (!connection_) return;
  pollfd end{connection_.get(), POLLIN, 0};
  net::poll_until({&end, 1}, Deadline::after(kToEnd));
}

}  // namespace peal::python
