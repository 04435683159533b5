#include "peal/engine/execution.h"

#include <algorithm>

#include "peal/kernels/kernels.h"

namespace peal::engine {
namespace {

using schedule::Finish;
using schedule::Move;
using schedule::Signal;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

/// Whether the received bytes go to one place without computation.
bool is_plain_receive(const Move& move) {
  return is_copy(move) && move.to.size() == 1 && move.to[0].ranks.count == 1;
}

}  // namespace

Execution::Execution(Rank self,
                     int ranks,
                     transport::Transport& transport,
                     std::function<void(Rank)> check_entry)
    : self_(self),
      channel_(transport.data()),
      header_sent_(static_cast<std::size_t>(ranks)),
      inbox_(self, ranks, transport.data()),
      outbox_(ranks) {
  missing_.reserve(2 * static_cast<std::size_t>(ranks));
  if (transport.window() != nullptr) {
    turns_.emplace(self, ranks, *transport.window(), std::move(check_entry));
  }
}

void Execution::enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare) {
  fingerprint_ = fingerprint;
  planned_ = nullptr;
  if (turns_) turns_->enter(fingerprint, place, compare);
}

void Execution::begin(const CachedPlan& plan,
                      const PlannedPart& planned,
                      BufferAddresses& addresses) {
  plan_ = &plan;
  planned_ = &planned;
  addresses_ = &addresses;
  at_ = 0;
  inbox_.begin();
  pace_.begin();
  if (planned.opening == 0) place_stage(addresses);
  // Peers may wait for the first signal, so it is given now and not in the first `advance`.
  if (planned.part.steps.empty()) return;
  if (const Signal* const first = std::get_if<Signal>(&planned.part.steps.front())) {
    step(*first);
    ++at_;
  }
}

bool Execution::open() { return run_to(planned_->opening); }

void Execution::go_on(const PlannedPart& planned, BufferAddresses& addresses) {
  planned_ = &planned;
  place_stage(addresses);
}

void Execution::place_stage(BufferAddresses& addresses) {
  const Bytes stage = bytes_of(planned_->part.stage, addresses.dtype());
  if (planned_->part.span > 0) return turns_->place_stage(stage, addresses);
  if (own_memory_.size() < static_cast<std::size_t>(stage.value)) {
    own_memory_.resize(static_cast<std::size_t>(stage.value));
  }
  addresses.set(Space::kStage, self_, own_memory_.data());
}

void Execution::end() {
  if (turns_) turns_->end(planned_->part.span);
}

Progress Execution::advance() {
  if (planned_->is_exchange && addresses_->in_one_piece()) {
    if (!exchange()) return Progress::kBlocked;
    end();
    return Progress::kDone;
  }
  moved_ = false;
  while (true) {
    if (!outbox_.empty()) pump();
    if (at_ == planned_->part.steps.size()) {
      if (outbox_.empty()) {
        end();
        return Progress::kDone;
      }
      return moved_ ? Progress::kMoved : Progress::kBlocked;
    }
    if (!step()) return moved_ ? Progress::kMoved : Progress::kBlocked;
    moved_ = true;
    ++at_;
  }
}

bool Execution::exchange() {
  const std::vector<Step>& steps = planned_->part.steps;
  const std::size_t copy = planned_->exchange;
  if (!run_to(copy)) return false;
  if (at_ == copy) {
    compute_in_one_piece(std::get<Move>(steps[copy]));
    step(std::get<Signal>(steps[copy + 1]));
    at_ = copy + 2;
  }
  if (at_ == copy + 2) {
    if (!step(std::get<Wait>(steps[at_]))) return false;
    ++at_;
  }
  compute_in_one_piece(std::get<Move>(steps[at_]));
  ++at_;
  return true;
}

bool Execution::run_to(std::size_t end) {
  for (; at_ < end; ++at_) {
    if (!step()) return false;
  }
  return true;
}

bool Execution::step() {
  return std::visit([this](const auto& kind) { return step(kind); }, planned_->part.steps[at_]);
}

bool Execution::step(const Signal& signal) {
  turns_->signal(signal.value);
  return true;
}

bool Execution::step(const Wait& wait) { return turns_->reached(wait.ranks, wait.value); }

bool Execution::step(const Move& move) {
  switch (operands().kind) {
    case Operands::Kind::kLocal:
      if (addresses_->in_one_piece()) {
        compute_in_one_piece(move);
      } else {
        compute(move, Elements(0), move.count, nullptr);
      }
      return true;
    case Operands::Kind::kSend:
      send(move);
      return true;
    case Operands::Kind::kReceive:
      return receive(move);
  }
  return false;
}

void Execution::send(const Move& move) {
  const Rank peer = operands().peer;
  auto& sent = header_sent_[static_cast<std::size_t>(peer)];
  if (sent != fingerprint_.sequence) {
    const Elements total = planned_->sent[static_cast<std::size_t>(peer)];
    outbox_.add_header(peer, {fingerprint_, bytes_of(total, addresses_->dtype())});
    sent = fingerprint_.sequence;
  }
  const Operand from = planned_->sources(operands()).front();
  for (Elements done; done < move.count;) {
    const Extent extent = addresses_->at({from.base, from.offset + done}, move.count - done);
    outbox_.add(
        peer,
        {extent.data, static_cast<std::size_t>(bytes_of(extent.count, addresses_->dtype()).value)});
    done += extent.count;
  }
}

void Execution::pump() {
  const Outbox::Pumped pumped = outbox_.pump(channel_, allowance());
  if (pumped.lost) throw PeerClosed{*pumped.lost};
  moved_ |= pumped.bytes.value > 0;
  pace_.sent(pumped.bytes);
}

Bytes Execution::allowance() const {
  const Step* const step = current();
  const bool receives = step != nullptr && std::holds_alternative<Move>(*step) &&
                        operands().kind == Operands::Kind::kReceive;
  if (!receives) return Pace::kUnlimited;
  return pace_.allowance(inbox_.has_begun() ? Pace::Receiving::kBegun : Pace::Receiving::kNotBegun);
}

// ---- receiving

bool Execution::receive(const Move& move) {
  const bool finished = receive_header(move) && (is_plain_receive(move) ? receive_straight(move)
                                                                        : receive_and_reduce(move));
  if (finished) inbox_.end_move();
  const Bytes received = inbox_.take_received_size();
  moved_ |= received > 0_B;
  pace_.received(received);
  return finished;
}

bool Execution::receive_header(const Move& move) {
  const Rank peer = operands().peer;
  if (inbox_.has_header(peer, fingerprint_.sequence)) return true;
  const Elements total = planned_->received[static_cast<std::size_t>(peer)];
  return inbox_.receive_header(peer,
                               {fingerprint_, bytes_of(total, addresses_->dtype())},
                               bytes_of(move.count, addresses_->dtype()));
}

bool Execution::receive_straight(const Move& move) {
  const Operand to = planned_->targets(operands()).front();
  const std::int64_t element = addresses_->element().value;
  const Bytes total = bytes_of(move.count, addresses_->dtype());
  while (inbox_.received() < total) {
    const Elements whole(inbox_.received().value / element);
    const std::int64_t part = inbox_.received().value % element;
    const Extent extent = addresses_->at({to.base, to.offset + whole}, move.count - whole);
    const auto room = static_cast<std::size_t>(extent.count.value * element - part);
    if (!inbox_.receive(operands().peer, {extent.data + part, room})) return false;
  }
  return true;
}

bool Execution::receive_and_reduce(const Move& move) {
  const std::int64_t element = addresses_->element().value;
  const Bytes total = bytes_of(move.count, addresses_->dtype());
  while (true) {
    const Elements whole(std::ssize(inbox_.held()) / element);
    if (whole.value > 0) {
      compute(move, Elements(inbox_.received().value / element), whole, inbox_.held().data());
      inbox_.use(addresses_->element() * whole.value);
    }
    if (inbox_.received() == total) return true;
    if (!inbox_.hold_more(operands().peer, total - inbox_.received())) return false;
  }
}

// ---- computing

void Execution::compute(const Move& move, Elements done, Elements count, const std::byte* wire) {
  const Operands& operands = this->operands();
  const std::span<const Operand> from = planned_->sources(operands);
  const std::span<const Operand> to = planned_->targets(operands);
  sources_.resize(from.size());
  targets_.resize(to.size());
  for (const Elements end = done + count; done < end;) {
    Elements here = end - done;  // up to the end of the first operand's piece that ends
    const auto place = [&](const Operand& operand) {
      const Extent extent = addresses_->at({operand.base, operand.offset + done}, here);
      here = extent.count;
      return extent.data;
    };
    for (std::size_t i = 0; i < from.size(); ++i) {
      sources_[i] = from[i].base == Operand::kWire ? wire : place(from[i]);
    }
    for (std::size_t i = 0; i < to.size(); ++i) targets_[i] = place(to[i]);
    compute(move.finish, here);
    done += here;
    if (wire != nullptr) wire += here.value * addresses_->element().value;
  }
}

void Execution::compute_in_one_piece(const Move& move) {
  const Operands& operands = this->operands();
  const Operand* const from = planned_->sources(operands).data();
  const Operand* const to = planned_->targets(operands).data();
  if (operands.sources == 1 && operands.targets == 1 && move.finish == Finish::kNo) {
    return copy(addresses_->address(*from), addresses_->address(*to), move.count);
  }
  const auto address = [&](const Operand& operand) { return addresses_->address(operand); };
  sources_.resize(operands.sources);
  targets_.resize(operands.targets);
  std::transform(from, from + operands.sources, sources_.begin(), address);
  std::transform(to, to + operands.targets, targets_.begin(), address);
  compute(move.finish, move.count);
}

/// Computes from `sources_` to `targets_`.
void Execution::compute(Finish finish, Elements count) {
  const Operands& move = operands();
  if (finish == Finish::kYes) {
    plan_->finisher(sources_, targets_, count, move.stores, planned_->weights_of(move));
  } else if (sources_.size() > 1) {
    plan_->reducer(sources_, targets_, count, move.stores, planned_->weights_of(move));
  } else if (targets_.size() > 1) {
    kernels::copy(sources_[0], targets_, addresses_->element() * count.value, move.stores);
  } else {
    copy(sources_[0], targets_[0], count);
  }
}

void Execution::copy(const std::byte* from, std::byte* to, Elements count) {
  const Bytes size = addresses_->element() * count.value;
  if (operands().stages && size >= kernels::WatchedCopy::kSmallest) {
    stage_copy_(from, to, size);
  } else {
    kernels::copy(from, to, size, operands().stores);
  }
}

// ---- waiting

const Step* Execution::current() const {
  if (planned_ == nullptr || at_ == planned_->part.steps.size()) return nullptr;
  return &planned_->part.steps[at_];
}

const Blocked& Execution::blocked() {
  using transport::Readiness;
  blocked_.interests.clear();
  blocked_.counter.reset();
  blocked_.holds_back = outbox_.has_queued() && allowance() == 0_B;
  if (!blocked_.holds_back) {
    for (const Rank peer : outbox_.waiting()) {
      blocked_.interests.push_back({peer, Readiness::kWritable});
    }
  }
  if (const Step* step = current()) {
    if (const Wait* wait = std::get_if<Wait>(step)) {
      blocked_.counter = turns_->missing(wait->ranks, wait->value);
    } else if (std::holds_alternative<Move>(*step)) {
      blocked_.interests.push_back({operands().peer, Readiness::kReadable});
    }
  }
  return blocked_;
}

const std::vector<Rank>& Execution::waiting_for() const {
  std::vector<Rank>& missing = missing_;
  missing.assign(outbox_.waiting().begin(), outbox_.waiting().end());
  if (const Step* step = current()) {
    if (const Wait* wait = std::get_if<Wait>(step)) {
      turns_->append_missing(wait->ranks, wait->value, missing);
    } else if (std::holds_alternative<Move>(*step)) {
      missing.push_back(operands().peer);
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

bool Execution::has_seen(Rank peer) const {
  return inbox_.has_header(peer, fingerprint_.sequence) || (turns_ && turns_->has_seen(peer));
}

void Execution::abandon() {
  outbox_.clear();
  planned_ = nullptr;
  addresses_ = nullptr;
}

}  // namespace peal::engine
