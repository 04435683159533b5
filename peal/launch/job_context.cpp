#include "peal/launch/job_context.h"

#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/net/socket.h"

namespace peal::launch {

NewJobContext make_job_context() {
  Fd port = net::reserve(net::Address::parse("127.0.0.1:0"));
  JobContext job{
      .id = net::random_hex(16),
      .secret = net::make_secret(),
      .port = net::local_address(port.get()).port(),
  };
  return {std::move(job), std::move(port)};
}

}  // namespace peal::launch
