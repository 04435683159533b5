// Bytes of a stranger in place of a proof of the job's secret: they are never accepted.
#include "peal/net/proof.h"

#include <sys/socket.h>

#include "peal/net/socket.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  constexpr std::size_t kMost = 4096;  // no more than a socket takes at once
  if (input.size() > kMost) return;
  for (const net::Role role : {net::Role::kConnector, net::Role::kAcceptor}) {
    const net::SocketPair pair = net::make_socket_pair();
    require(
        ::send(pair.b.get(), input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()),
        "send");
    net::Proof proof(
        role, {.secret = Secret("secret"), .job = "job", .purpose = "purpose"}, {.rank = 0});
    for (int stage = 0; stage < 4; ++stage) {
      const auto hello =
          unless_refused(ErrorKind::kUsage, [&] { return proof.advance(pair.a.get()); });
      if (!hello) break;
      require(!*hello, "a stranger has proved a secret that it does not know");
    }
  }
}
