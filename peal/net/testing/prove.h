// For tests: runs only the proof, without the rest of the handshake (handshake.h).
#pragma once

#include "peal/net/handshake.h"
#include "peal/net/proof.h"

namespace peal::net {

/// Runs the proof on a fresh connection and returns the other end's hello.
/// Errors: as Proof; timeout.
inline Hello prove(
    int fd, Role role, const ProofContext& context, const Hello& self, Deadline deadline) {
  Proof proof(role, context, self);
  while (true) {
    if (const auto other = proof.advance(fd)) return *other;
    pollfd entry{fd, proof.interest(), 0};
    if (!poll_until({&entry, 1}, deadline))
      throw Error(ErrorKind::kTimeout, "the other end is slow");
  }
}

}  // namespace peal::net
