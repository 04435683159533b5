#include "tests/explore/job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/shm/mail_thread.h"
#include "peal/transport/shm/ring_channel.h"
#include "peal/transport/testing/faulty.h"
#include "peal/transport/testing/forwarding.h"

#include "tests/explore/scheduler.h"

namespace peal::explore {
namespace {

using transport::Channel;
using transport::ConstPiece;
using transport::Interest;
using transport::Transfer;
using transport::Transport;

constexpr int kRanks = 3;
constexpr Timeout kTimeout = std::chrono::hours(1);

/// A channel with scheduling points. It reports progress when bytes move.
class ExploredChannel final : public transport::ForwardingChannel {
 public:
  /// With `socket`, `wait` sleeps until that channel is ready, as poll(2) does on sockets. If
  /// another thread reads all bytes first, the sleep goes on. Without `socket` the inner channel
  /// waits.
  ExploredChannel(Channel& inner, const transport::RingChannel* socket)
      : ForwardingChannel(inner), socket_(socket) {}

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override {
    point();
    return noted(ForwardingChannel::try_send(peer, pieces));
  }
  bool try_flush(Rank peer) override {
    point();
    return ForwardingChannel::try_flush(peer);
  }
  Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    point();
    return noted(ForwardingChannel::try_receive(peer, into));
  }
  void wait(std::span<const Interest> interests, Deadline deadline) override {
    point_before_sleep();
    if (socket_ == nullptr) return ForwardingChannel::wait(interests, deadline);
    const auto is_ready = [&] { return interrupted_.load() || socket_->is_any_ready(interests); };
    while (!is_ready()) {
      if (sleep_until(instant_of(deadline), "on sockets", is_ready) == Woken::kLate) break;
    }
    interrupted_ = false;
  }
  void interrupt() noexcept override {
    point();
    interrupted_ = true;
    ForwardingChannel::interrupt();
  }

 private:
  static Instant instant_of(Deadline deadline) {
    if (deadline.at() == TimePoint::max()) return Instant::never();
    return {std::chrono::nanoseconds(deadline.at().time_since_epoch()).count()};
  }
  static Transfer noted(const Transfer& transfer) {
    if (transfer.bytes > 0_B) progress();
    return transfer;
  }

  const transport::RingChannel* socket_;
  std::atomic<bool> interrupted_ = false;
};

class ExploredTransport final : public transport::ForwardingTransport {
 public:
  /// `has_sockets`: the thread for this group's mail waits as on sockets.
  ExploredTransport(std::unique_ptr<Transport> inner, int cpus, bool has_sockets)
      : ForwardingTransport(std::move(inner)),
        shared_(this->inner().shared_mail()),
        has_sockets_(has_sockets),
        data_(this->inner().data(), nullptr),
        mail_(this->inner().mail(), has_sockets ? &shared_.value().channel : nullptr),
        cpus_(cpus) {}

  Channel& data() override { return data_; }
  Channel& mail() override { return mail_; }
  std::optional<transport::SharedMail> shared_mail() override {
    return has_sockets_ ? std::nullopt : shared_;
  }
  int cpus_on_host() const override { return cpus_; }

 private:
  std::optional<transport::SharedMail> shared_;
  bool has_sockets_;
  ExploredChannel data_;
  ExploredChannel mail_;
  int cpus_;
};

/// Some messages from one rank to another, sent by one thread and received by one thread.
struct Step {
  Rank from = 0;
  Rank to = 0;
  Elements count;
  int times = 1;
  bool computes_first = false;  // the receiver, before it receives
  bool sends_later = false;     // isend, and a wait some steps later
  bool receives_later = false;  // irecv, likewise
};

/// The actions of a job, drawn from its seed.
struct Plan {
  transport::MemoryOptions memory;
  std::optional<transport::Faults> faults;
  int cpus = 1;
  bool has_sockets = false;
  int groups = 1;  // of all ranks; without faults and sockets they share transport::MailThread
  std::vector<std::vector<Step>> conversations;  // one for each sending thread of a rank
  int collectives = 0;
  std::optional<Bytes> eager_bound;  // for small messages
};

/// A random number below a bound.
using Below = std::function<std::uint64_t(std::uint64_t)>;

transport::MemoryOptions draw_memory(const Below& below) {
  using Sharing = transport::MemoryOptions::Sharing;
  constexpr std::array kRings = {64_KiB, 1_MiB, 1_MiB, 1_MiB};
  transport::MemoryOptions memory;
  memory.sharing = below(4) == 0 ? Sharing::kWindow : Sharing::kMessagesOnly;
  memory.mail_ring = kRings[below(kRings.size())];
  memory.data_ring = 64_KiB;
  memory.arena = 4_MiB;
  return memory;
}

Step draw_step(const Below& below) {
  // Small messages, messages that just fit, and messages that come in one piece or in several.
  constexpr std::array<std::int64_t, 6> kCounts = {1, 10, 4'096, 5'000, 80'000, 300'000};
  Step step;
  step.from = static_cast<Rank>(below(kRanks));
  step.to = static_cast<Rank>((step.from + 1 + static_cast<Rank>(below(kRanks - 1))) % kRanks);
  step.count = Elements(kCounts[below(kCounts.size())]);
  step.computes_first = below(2) == 0;
  step.sends_later = below(2) == 0;
  step.receives_later = below(2) == 0;
  return step;
}

/// Messages of all kinds. As in programs, a message is often followed by an answer.
std::vector<Step> draw_conversation(const Below& below) {
  std::vector<Step> steps(2 + below(4));
  for (Step& step : steps) step = draw_step(below);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (below(2) == 0)
      std::tie(steps[i].from, steps[i].to) = std::tuple(steps[i - 1].to, steps[i - 1].from);
  }
  return steps;
}

/// A large message is in flight while small messages pass, mostly to its sender. After the last
/// small message no thread calls the group until the large message has arrived.
std::vector<Step> draw_background(const Below& below) {
  std::vector<Step> steps = {draw_step(below)};
  steps[0].count = Elements(80'000);
  steps[0].sends_later = steps[0].receives_later = true;
  steps[0].computes_first = below(4) != 0;
  steps.resize(below(4) == 0 ? 3 : 2);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const bool to_sender = below(4) != 0;
    steps[i] = {.from = to_sender ? steps[0].to : steps[0].from,
                .to = to_sender ? steps[0].from : steps[0].to,
                .count = Elements(10),
                .computes_first = below(4) != 0};
  }
  return steps;
}

/// Turns some of the messages into bursts of small messages. The receiver keeps only a few.
void draw_bursts(Plan& plan, const Below& below) {
  constexpr std::array kBounds = {17_KiB, 40'000_B, 100'000_B};
  constexpr std::array<std::int64_t, 4> kCounts = {1, 500, 2'000, 4'096};
  plan.eager_bound = kBounds[below(kBounds.size())];
  for (std::vector<Step>& steps : plan.conversations) {
    for (Step& step : steps) {
      if (below(2) == 0) continue;
      step.count = Elements(kCounts[below(kCounts.size())]);
      step.times = 2 + static_cast<int>(below(30));
    }
  }
}

Plan draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Below below = [&](std::uint64_t bound) { return random() % bound; };
  Plan plan;
  plan.memory = draw_memory(below);
  plan.cpus = below(2) == 0 ? 16 : 1;
  if (below(4) == 0) {
    plan.faults = transport::Faults{.seed = static_cast<unsigned>(seed),
                                    .most_per_call = 30'000_B,
                                    .idle_calls = static_cast<int>(below(2))};
  } else {
    plan.has_sockets = below(2) == 0;
  }
  if (below(2) == 0) {
    plan.conversations = {draw_background(below)};
    return plan;
  }
  plan.conversations.resize(1 + below(3));
  for (std::vector<Step>& steps : plan.conversations) steps = draw_conversation(below);
  plan.collectives = static_cast<int>(below(3));
  if (below(3) == 0) draw_bursts(plan, below);
  plan.groups = 1 + static_cast<int>(below(2));
  return plan;
}

/// A value that differs by element, by message of a step, and by step.
float value_of(std::size_t step, Rank from, std::size_t index) {
  return static_cast<float>((step * kRanks + static_cast<std::size_t>(from)) * 300'000 + index);
}

std::span<float> part(std::vector<float>& values, Elements count, int which) {
  const auto size = static_cast<std::size_t>(count.value);
  return std::span(values).subspan(static_cast<std::size_t>(which) * size, size);
}

/// One thread's part of a conversation.
class Speaker {
 public:
  Speaker(ProcessGroup& group, const std::vector<Step>& steps, Tag tag)
      : group_(group), steps_(steps), tag_(tag), values_(steps.size()), works_(steps.size()) {}

  void speak() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].from == group_.rank()) send(i);
      if (steps_[i].to == group_.rank()) {
        if (steps_[i].computes_first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        receive(i);
      }
      if (i >= kLater) finish(i - kLater);
      progress();
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) finish(i);
  }

 private:
  static constexpr std::size_t kLater = 2;

  void send(std::size_t i) {
    std::vector<float>& values = values_[i];
    values.resize(size_of(steps_[i]));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = value_of(i, group_.rank(), k);
    for (int time = 0; time < steps_[i].times; ++time) {
      const ConstBuffer message(part(values, steps_[i].count, time));
      if (steps_[i].sends_later) {
        works_[i].push_back(group_.isend(message, steps_[i].to, {.tag = tag_}));
      } else {
        group_.send(message, steps_[i].to, {.tag = tag_});
      }
    }
  }

  void receive(std::size_t i) {
    values_[i].resize(size_of(steps_[i]));
    for (int time = 0; time < steps_[i].times; ++time) {
      const Buffer message(part(values_[i], steps_[i].count, time));
      if (steps_[i].receives_later) {
        works_[i].push_back(group_.irecv(message, steps_[i].from, {.tag = tag_}));
      } else {
        group_.recv(message, steps_[i].from, {.tag = tag_});
      }
    }
    if (!steps_[i].receives_later) check(i);
  }

  void finish(std::size_t i) {
    if (works_[i].empty()) return;
    for (const WorkPtr& work : works_[i]) work->wait();
    works_[i].clear();
    if (steps_[i].to == group_.rank()) check(i);
  }

  static std::size_t size_of(const Step& step) {
    return static_cast<std::size_t>(step.count.value * step.times);
  }

  void check(std::size_t i) const {
    for (std::size_t k = 0; k < values_[i].size(); ++k) {
      if (values_[i][k] == value_of(i, steps_[i].from, k)) continue;
      throw std::runtime_error(fmt::format("message {}: element {} is wrong", i, k));
    }
  }

  ProcessGroup& group_;
  const std::vector<Step>& steps_;
  Tag tag_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<WorkPtr>> works_;
};

void reduce(ProcessGroup& group, int times) {
  for (int i = 0; i < times; ++i) {
    std::vector<float> values(i % 2 == 0 ? 3 : 5'000, static_cast<float>(group.rank() + i));
    if (i % 3 == 1) {
      group.all_reduce_async(values)->wait();
    } else {
      group.all_reduce(values);
    }
    progress();
    const auto expected = static_cast<float>(kRanks * (kRanks - 1) / 2 + kRanks * i);
    if (std::ranges::any_of(values, [&](float value) { return value != expected; })) {
      throw std::runtime_error(fmt::format("all_reduce {} is wrong", i));
    }
  }
}

std::unique_ptr<ProcessGroup> make_group(const Plan& plan,
                                         Rank rank,
                                         std::unique_ptr<Transport>& connected) {
  native::Options options;
  options.rank = rank;
  options.world_ranks = {0, 1, 2};
  options.eager_bound = plan.eager_bound;
  options.connect = [&](auto&&, auto&&, Deadline, auto&&, const native::UseTransport& use) {
    use(std::move(connected));
  };
  return std::make_unique<ProcessGroup>(
      native::make_backend(std::move(options), Deadline::after(kTimeout)),
      ProcessGroup::Options{.timeout = kTimeout});
}

/// `connected`: one for each group.
void run_rank(const Plan& plan, Rank rank, std::vector<std::unique_ptr<Transport>>& connected) {
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (auto& one : connected) groups.push_back(make_group(plan, rank, one));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plan.conversations.size(); ++i) {
    threads.emplace_back([&, i] {
      ProcessGroup& group = *groups[i % groups.size()];
      Speaker(group, plan.conversations[i], Tag{static_cast<std::int32_t>(i)}).speak();
    });
  }
  reduce(*groups.back(), plan.collectives);
  for (std::thread& thread : threads) thread.join();
  for (const auto& group : groups) group->destroy();
  progress();
}

/// By rank, for each of its groups.
std::array<std::vector<std::unique_ptr<Transport>>, kRanks> connect_all(const Plan& plan) {
  transport::MemoryOptions options = plan.memory;
  // With faults or sockets each group has its own thread for its mail.
  for (int rank = 0; rank < kRanks && !plan.faults && !plan.has_sockets; ++rank) {
    options.mail_threads.push_back(std::make_shared<transport::MailThread>());
  }
  std::array<std::vector<std::unique_ptr<Transport>>, kRanks> all;
  for (int group = 0; group < plan.groups; ++group) {
    auto transports = transport::make_memory_transports(kRanks, options);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      auto& one = transports[rank];
      if (plan.faults) one = transport::make_faulty(std::move(one), *plan.faults);
      all[rank].push_back(
          std::make_unique<ExploredTransport>(std::move(one), plan.cpus, plan.has_sockets));
    }
  }
  return all;
}

}  // namespace

void run_job(std::uint64_t seed, bool remembers_stacks) {
  const Plan plan = draw(seed);
  std::array<std::vector<std::unique_ptr<Transport>>, kRanks> transports = connect_all(plan);
  run({.seed = seed, .remembers_stacks = remembers_stacks}, [&] {
    std::vector<std::thread> ranks;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      auto& own = transports[static_cast<std::size_t>(rank)];
      ranks.emplace_back([&plan, rank, &own] { run_rank(plan, rank, own); });
    }
    for (std::thread& rank : ranks) rank.join();
  });
}

}  // namespace peal::explore
