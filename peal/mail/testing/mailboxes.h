// Mailboxes that are connected over the memory transport and driven by hand. For the tests of the
// mailbox and its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/mail/mailbox.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/faulty.h"

namespace peal::mail::testing {

/// Two mailboxes, unless a test connects more.
class MailboxTest : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<Mailbox> mailbox;
    std::vector<std::string> failures;
    std::vector<Rank> lost;
    std::map<Rank, engine::ProgressReport> progress_reports;
  };

  MailboxTest() { connect({}); }

  /// `bound`: on small messages; by default the bound for this number of ranks.
  void connect(const transport::Faults& faults,
               int ranks = 2,
               std::optional<Bytes> bound = std::nullopt) {
    auto transports = transport::make_memory_transports(ranks);
    for (auto& one : transports) one = transport::make_faulty(std::move(one), faults);
    connect_over(std::move(transports), bound);
  }

  /// Without faults, and without the layer that injects them.
  void connect_plain(std::optional<Bytes> bound = std::nullopt) {
    connect_over(transport::make_memory_transports(2), bound);
  }

  void connect_over(std::vector<std::unique_ptr<transport::Transport>> transports,
                    std::optional<Bytes> bound = std::nullopt) {
    const auto ranks = static_cast<int>(transports.size());
    ends_ = std::vector<End>(transports.size());
    for (Rank rank = 0; rank < ranks; ++rank) {
      End& end = ends_[static_cast<std::size_t>(rank)];
      end.transport = std::move(transports[static_cast<std::size_t>(rank)]);
      end.mailbox = std::make_unique<Mailbox>(
          rank,
          ranks,
          *end.transport,
          Mailbox::Events{
              .failed = [&end](const Error& error) { end.failures.emplace_back(error.what()); },
              .lost = [&end](Rank peer) { end.lost.push_back(peer); },
              .damaged =
                  [&end](Rank peer, const std::string& how) {
                    end.failures.push_back(fmt::format("rank {} is damaged: {}", peer, how));
                  },
              .left = [&end](Rank,
                             Departure,
                             const Error& error) { end.failures.emplace_back(error.what()); },
              .report = [&end](
                            Rank peer,
                            const engine::ProgressReport& s) { end.progress_reports[peer] = s; }},
          bound);
    }
  }

  /// 1, 2, 3 and so on.
  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.F);
    return values;
  }

  TicketPtr send(Rank from, const std::vector<float>& data, Tag tag = {}) {
    auto ticket = std::make_shared<Ticket>("send", Timeout(60'000));
    box(from).send(ticket,
                   {1 - from, tag, DType::kF32, Elements(static_cast<std::int64_t>(data.size()))},
                   reinterpret_cast<const std::byte*>(data.data()));
    return ticket;
  }

  bool send_at_once(Rank from, const std::vector<float>& data) {
    return box(from).send_at_once(
        {1 - from, {}, DType::kF32, Elements(static_cast<std::int64_t>(data.size()))},
        reinterpret_cast<const std::byte*>(data.data()));
  }

  TicketPtr receive(Rank at, std::vector<float>& data, Rank from, Tag tag = {}) {
    auto ticket = std::make_shared<Ticket>("recv", Timeout(60'000));
    box(at).receive(ticket,
                    {from, tag, DType::kF32, Elements(static_cast<std::int64_t>(data.size()))},
                    reinterpret_cast<std::byte*>(data.data()));
    return ticket;
  }

  /// Advances all mailboxes until nothing moves any more.
  void settle() {
    for (int quiet = 0; quiet < 1'000; ++quiet) {
      for (const End& end : ends_) {
        if (end.mailbox->advance()) quiet = 0;
      }
    }
  }

  Mailbox& box(Rank rank) { return *ends_[static_cast<std::size_t>(rank)].mailbox; }
  End& end(Rank rank) { return ends_[static_cast<std::size_t>(rank)]; }

  std::vector<End> ends_;
};

}  // namespace peal::mail::testing
