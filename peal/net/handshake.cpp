#include "peal/net/handshake.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "peal/net/checked_stream.h"
#include "peal/net/plain_stream.h"

namespace peal::net {
namespace {

ProofContext context_for(int fd, ProofContext context) {
  if (local_address(fd).is_unix()) context.protection = LinkProtection::kPlain;
  return context;
}

}  // namespace

void check_neighbour(int fd) {
  if (!local_address(fd).is_unix() || neighbour_at(fd).user == ::geteuid()) return;
  throw Error(ErrorKind::kUsage, "the process at the other end belongs to another user");
}

Handshake::Handshake(Fd fd, Role role, ProofContext context, const Hello& self)
    : fd_(std::move(fd)),
      role_(role),
      protection_(context_for(fd_.get(), context).protection),
      proof_(role, context_for(fd_.get(), std::move(context)), self) {}

std::optional<Welcome> Handshake::advance() {
  if (!neighbour_is_known_) check_neighbour(fd_.get());
  neighbour_is_known_ = true;
  if (!other_) other_ = proof_.advance(fd_.get());
  if (!other_) return std::nullopt;
  switch (protection_) {
    case LinkProtection::kPlain:
      return Welcome{*other_, std::make_unique<PlainStream>(std::move(fd_))};
    case LinkProtection::kChecked:
      return Welcome{*other_, std::make_unique<CheckedStream>(std::move(fd_))};
    case LinkProtection::kEncrypted:
      break;
  }
  if (!encrypted_) {
    std::string key = proof_.key();
    const Wiped wiped(key);
    encrypted_ = std::make_unique<EncryptedStream>(std::move(fd_), role_, key);
  }
  if (!encrypted_->try_handshake()) return std::nullopt;
  return Welcome{*other_, std::move(encrypted_)};
}

short Handshake::interest() const {
  return encrypted_ ? encrypted_->interest() : proof_.interest();
}

Error Handshake::too_slow() const {
  const char* const what = has_proof() ? "knows this job's secret, but did not finish the TLS "
                                         "handshake in time: it is stopped or stuck"
                                       : "did not prove in time that it knows this job's secret: "
                                         "it is stopped or stuck, or is not a peal "
                                         "process";
  return Error(ErrorKind::kTimeout, fmt::format("{} {}", peer_name(fd()), what));
}

Welcome shake_hands(Fd fd,
                    Role role,
                    const ProofContext& context,
                    const Hello& self,
                    Deadline deadline,
                    const Interrupt& interrupt) {
  Handshake handshake(std::move(fd), role, context, self);
  while (true) {
    if (auto welcome = handshake.advance()) return std::move(*welcome);
    pollfd entry{handshake.fd(), handshake.interest(), 0};
    if (!poll_until({&entry, 1}, deadline, interrupt)) throw handshake.too_slow();
  }
}

}  // namespace peal::net
