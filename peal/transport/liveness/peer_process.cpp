#include "peal/transport/liveness/peer_process.h"

#include "peal/transport/liveness/presence.h"

namespace peal::transport {

bool PeerProcess::has_ended() noexcept {
  if (!is_known_to_have_ended() && transport::has_ended(sign())) note_end();
  return is_known_to_have_ended();
}

}  // namespace peal::transport
