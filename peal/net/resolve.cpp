#include "peal/net/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"

namespace peal::net {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

Answer look_up(const std::string& host, int family, int flags) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  if (failure != 0) return {{}, ::gai_strerror(failure)};
  const AddressList list(first);
  Answer answer{{}, "the list is empty"};
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const Address address(entry->ai_addr, entry->ai_addrlen);
    if (std::ranges::count(answer.addresses, address) == 0) answer.addresses.push_back(address);
  }
  return answer;
}

/// Holds the answer. The service's thread shares it, because that thread may outlive the caller.
using SharedAnswer = Guarded<std::optional<Answer>>;

void ask(const NameService& service, const std::string& host, SharedAnswer& shared) {
  Answer answer;
  try {
    answer = service(host);
  } catch (const std::exception& exception) {
    answer = {{}, exception.what()};
  }
  shared.update([&](std::optional<Answer>& stored) { stored = std::move(answer); });
}

Answer answer_before(Deadline deadline,
                     const std::string& host,
                     NameService service,
                     const Interrupt& interrupt) {
  const auto shared = std::make_shared<SharedAnswer>();
  try {
    std::thread([shared, host, service = std::move(service)] {
      ask(service, host, *shared);
    }).detach();
  } catch (const std::system_error& error) {
    throw system_error(fmt::format("cannot start a thread to look up the host \"{}\"", host),
                       error.code().value());
  }
  Answer answer;
  const bool answered = wait_or_interrupt(deadline, interrupt, [&](Deadline slice) {
    return shared->wait(
        slice,
        [](const std::optional<Answer>& stored) { return stored.has_value(); },
        [&](std::optional<Answer>& stored) { answer = std::move(*stored); });
  });
  if (answered) return answer;
  throw Error(ErrorKind::kTimeout,
              fmt::format("the name service did not give an address for the host \"{}\" in time: "
                          "check this machine's name service, or give the host's numeric address",
                          host));
}

}  // namespace

Answer ask_system(const std::string& host) { return look_up(host, AF_UNSPEC, 0); }

Answer read_number(const std::string& host, int family) {
  return look_up(host, family, AI_NUMERICHOST);
}

std::vector<Address> resolve(const std::string& host,
                             std::uint16_t port,
                             Deadline deadline,
                             NameService service,
                             const Interrupt& interrupt) {
  Answer answer = read_number(host, AF_UNSPEC);
  if (answer.addresses.empty()) {
    answer = answer_before(deadline, host, std::move(service), interrupt);
  }
  if (answer.addresses.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("no address is known for the host \"{}\" ({}): check its spelling and "
                            "this machine's name service",
                            host,
                            answer.failure));
  }
  for (Address& address : answer.addresses) address = address.with_port(port);
  return std::move(answer.addresses);
}

}  // namespace peal::net
