// A process between two ranks: forwards all their TCP traffic, and changes a byte on request. For
// tests of what links detect.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <thread>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/net/address.h"
#include "peal/system/fd.h"

namespace peal::testing {

class Interceptor {
 public:
  /// Listens on loopback in place of `target`, and forwards every connection to it.
  explicit Interceptor(net::Address target);
  ~Interceptor();

  const net::Address& address() const { return address_; }

  /// The first bytes of all connections, up to some hundred, as an eavesdropper would record them.
  std::vector<std::byte> recorded();

  /// Changes the last byte of the next traffic.
  void flip_next() { flip_ = true; }
  /// Whether a byte was changed.
  bool has_flipped() const { return has_flipped_; }

 private:
  /// Two sockets; each receives the bytes of the other.
  struct Passage {
    Fd a;
    Fd b;
  };

  void work();
  void welcome();
  bool pass(int from, int to, Guarded<std::vector<std::byte>>* recorded);

  net::Address target_;
  Fd listener_;
  net::Address address_;
  std::list<Passage> passages_;
  std::atomic<bool> flip_ = false;
  std::atomic<bool> has_flipped_ = false;
  std::atomic<bool> stop_ = false;
  Guarded<std::vector<std::byte>> recorded_;
  std::thread thread_;
};

}  // namespace peal::testing
