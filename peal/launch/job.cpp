#include "peal/launch/job.h"

#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/net/socket.h"

namespace peal::launch {

NewJob make_job() {
  Fd port = net::reserve(net::Address::parse("127.0.0.1:0"));
  Job job{
      .id = net::random_hex(16),
      .secret = net::make_secret(),
      .port = net::local_address(port.get()).port(),
  };
  return {std::move(job), std::move(port)};
}

}  // namespace peal::launch
