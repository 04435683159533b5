#include "peal/store/tcp_store_server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/store/store.h"
#include "peal/store/table.h"
#include "peal/store/tcp_session.h"
#include "peal/system/thread.h"

namespace peal::store {
namespace {

using Sessions = std::vector<std::unique_ptr<TcpSession>>;

/// What the server's thread owns: the table, the sessions and the loop over them.
class ServerLoop {
 public:
  ServerLoop(std::vector<Fd> listeners,
             net::ProofContext context,
             const net::AcceptLimits& limits,
             Report report)
      : listeners_(std::move(listeners)),
        context_(std::move(context)),
        accept_limiter_(limits, "the job's store", std::move(report)) {}

  /// One round: waits for something to do and does it. Returns false once `stop` is readable.
  bool turn(int stop) {
    std::vector<pollfd> entries = {{stop, POLLIN, 0}};
    const bool accepts = accepting();
    for (const Fd& listener : listeners_) {
      entries.push_back({accepts ? listener.get() : -1, POLLIN, 0});  // poll ignores -1
    }
    for (const auto& session : sessions_) {
      entries.push_back({session->fd(), session->interest(), 0});
    }
    net::poll_until(entries, Deadline(next_alarm()));
    if (entries[0].revents != 0) return false;
    const TimePoint now = Clock::now();
    serve(std::span(entries).subspan(1 + listeners_.size()), now);
    drop_slow(now);
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (entries[1 + i].revents != 0) accept_all(listeners_[i].get(), now);
    }
    return true;
  }

  std::size_t clients() const { return sessions_.size() - count_half_open(); }

 private:
  std::size_t count_half_open() const {
    return static_cast<std::size_t>(std::count_if(
        sessions_.begin(), sessions_.end(), [](const auto& s) { return !s->is_proved(); }));
  }

  bool accepting() const {
    const TimePoint now = Clock::now();
    return accept_limiter_.may_accept(count_half_open(), now);
  }

  TimePoint next_alarm() const {
    const TimePoint accepts_from = accept_limiter_.pause_until();
    TimePoint alarm = Clock::now() < accepts_from ? accepts_from : TimePoint::max();
    const Timeout proof_timeout = accept_limiter_.proof_timeout(count_half_open());
    for (const auto& session : sessions_) {
      alarm = std::min(alarm, session->due());
      if (!session->is_proved()) alarm = std::min(alarm, session->since() + proof_timeout);
      if (session->has_work()) alarm = TimePoint{};
    }
    return alarm;
  }

  /// Runs `action` on a session. If the session fails for any reason, only this session is closed,
  /// and its last wills are carried out.
  template <class Action>
  void attempt(std::unique_ptr<TcpSession>& session, Action&& action) {
    try {
      action(*session);
      return;
    } catch (const std::exception&) {
      if (!session->is_proved())
        drop(session->from(), current_error("the handshake with a client"));
    }
    for (const WillRequest& will : session->last_wills()) {
      if (table_.find(will.key) != nullptr) continue;
      table_.set(will.key, will.value);
      changed_ = true;
    }
    session.reset();
  }

  void serve(std::span<const pollfd> entries, TimePoint now) {
    changed_ = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].revents == 0 && !sessions_[i]->has_work()) continue;
      attempt(sessions_[i], [&](TcpSession& s) { changed_ |= s.advance(table_, now); });
    }
    bool changed = false;
    do {  // again if a session ended meanwhile and its last will changed the table
      changed = std::exchange(changed_, false);
      for (auto& session : sessions_) {
        if (!session || (!changed && now < session->due())) continue;
        attempt(session, [&](TcpSession& s) { s.look_again(table_, now); });
      }
    } while (changed_);
    std::erase(sessions_, nullptr);
  }

  void drop_slow(TimePoint now) {
    const Timeout proof_timeout = accept_limiter_.proof_timeout(count_half_open());
    std::erase_if(sessions_, [&](const auto& session) {
      const bool slow = !session->is_proved() && session->since() + proof_timeout <= now;
      if (slow) accept_limiter_.dropped(session->from(), session->too_slow().message(), now);
      return slow;
    });
  }

  /// A client that hangs up may retry. A rejected rank does not retry, so the store records the
  /// rejection for the ranks that wait for it.
  void drop(const net::Address& from, const Error& why) {
    if (why.kind() == ErrorKind::kPeerLost) return accept_limiter_.hung_up(from, Clock::now());
    accept_limiter_.dropped(from, why.message(), Clock::now());
    note_rejected(why);
  }

  void note_rejected(const Error& why) {
    table_.set(kRefusedKey,
               ++refused_ == 1
                   ? fmt::format("the job's store refused a connection: {}", why.message())
                   : fmt::format("the job's store refused {} connections, the last one: {}",
                                 refused_,
                                 why.message()));
  }

  /// Accepts a limited number in one call, since connections may come faster than they are closed.
  void accept_all(int listener, TimePoint now) {
    constexpr int kMost = 256;
    try {
      for (int i = 0; i < kMost && accepting(); ++i) {
        std::optional<Fd> fd = net::accept_from(listener, Deadline(now));
        if (!fd) return;
        welcome(std::move(*fd), now);
      }
    } catch (const std::exception&) {
      accept_limiter_.accept_failed(now);
    }
  }

  void welcome(Fd fd, TimePoint now) {
    net::Address from;
    try {
      net::check_neighbour(fd.get());
      from = net::peer_address(fd.get());
      if (!from.is_unix()) net::set_no_delay(fd.get());
    } catch (const Error& error) {  // another user's process, or the client has hung up
      if (error.kind() != ErrorKind::kUsage) return;
      accept_limiter_.closed_unread(error.message(), now);
      return note_rejected(error);
    }
    if (accept_limiter_.is_paused(from, now)) return;
    sessions_.push_back(std::make_unique<TcpSession>(std::move(fd), from, context_, now));
  }

  std::vector<Fd> listeners_;
  net::ProofContext context_;
  net::AcceptLimiter accept_limiter_;
  Table table_;
  Sessions sessions_;
  bool changed_ = false;  // whether the table changed since the parked requests were checked
  long refused_ = 0;
};

}  // namespace

TcpStoreServer::TcpStoreServer(std::vector<Fd> listeners,
                               net::ProofContext context,
                               const net::AcceptLimits& limits,
                               Report report)
    : address_(net::local_address(listeners.at(0).get())),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!address_.is_unix()) net::check(context);
  if (!stop_) throw system_error("cannot make an eventfd for the store's server", errno);
  thread_ = start_thread(
      [this](ServerLoop loop) {
        try {
          while (loop.turn(stop_.get())) publish(loop.clients());
        } catch (const std::exception&) {
          // Out of memory. The connections close with the loop, and every client gets peer_lost.
        }
        publish(0);
      },
      ServerLoop(std::move(listeners), std::move(context), limits, std::move(report)));
}

TcpStoreServer::~TcpStoreServer() {
  if (!owner_.is_current()) {
    leave_to_parent(std::move(thread_));
    return;
  }
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void TcpStoreServer::publish(std::size_t clients) {
  clients_.update([&](std::size_t& value) { value = clients; });
}

net::Address TcpStoreServer::address() const { return address_; }

bool TcpStoreServer::wait_until_all_have_left(Timeout pause) {
  std::size_t left = std::numeric_limits<std::size_t>::max();
  const auto has_changed = [&](std::size_t clients) { return clients == 0 || clients < left; };
  while (left > 0) {
    const Deadline deadline = Deadline::after(pause);
    if (!clients_.wait(deadline, has_changed, [&](std::size_t clients) { left = clients; })) {
      return false;
    }
  }
  return true;
}

}  // namespace peal::store
