// Somebody between two ranks: passes on whatever they say to each other over TCP, and changes a
// byte of it when told to. For tests of what links notice.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <thread>
#include <vector>

#include "peal/base/fd.h"
#include "peal/base/guarded.h"
#include "peal/net/address.h"

namespace peal::testing {

class Meddler {
 public:
  /// Listens on loopback in place of `target`, to which it passes every connection on.
  explicit Meddler(net::Address target);
  ~Meddler();

  const net::Address& address() const { return address_; }

  /// The first bytes that anybody who called has said, up to some hundred: what one who listens
  /// has.
  std::vector<std::byte> overheard();

  /// Changes the last byte of whatever passes next.
  void flip_next() { flip_ = true; }
  /// Whether that has happened.
  bool has_flipped() const { return has_flipped_; }

 private:
  /// Two sockets, of which each gets what the other says.
  struct Passage {
    Fd a;
    Fd b;
  };

  void work();
  void welcome();
  bool pass(int from, int to, Guarded<std::vector<std::byte>>* overheard);

  net::Address target_;
  Fd listener_;
  net::Address address_;
  std::list<Passage> passages_;
  std::atomic<bool> flip_ = false;
  std::atomic<bool> has_flipped_ = false;
  std::atomic<bool> stop_ = false;
  Guarded<std::vector<std::byte>> overheard_;
  std::thread thread_;
};

}  // namespace peal::testing
