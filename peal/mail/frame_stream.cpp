#include "peal/mail/frame_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace peal::mail {

using transport::ConstPiece;
using transport::Transfer;

void FrameStream::post(const Frame& frame, std::span<const std::byte> payload, TicketPtr ends) {
  queue_.push_back({frame.encode(), payload, {}, std::move(ends)});
}

bool FrameStream::post_at_once(const Frame& frame, std::span<const std::byte> payload) {
  if (!queue_.empty() || is_cut_) return false;
  const auto header = frame.encode();
  const std::array<ConstPiece, 2> pieces = {ConstPiece(header), payload};
  const Transfer transfer = channel_.try_send(peer_, pieces);
  held_ = transfer.held;
  const auto sent = static_cast<std::size_t>(transfer.bytes.value);
  if (sent == 0) return false;
  if (sent < header.size() + payload.size()) {
    is_cut_ = true;  // stays true if the copy of the rest throws
    post_owned(frame, {payload.begin(), payload.end()});
    queue_.back().sent = sent;
    is_cut_ = false;
  }
  return true;
}

void FrameStream::post_owned(const Frame& frame, std::vector<std::byte> payload) {
  queue_.push_back({frame.encode(), {}, std::move(payload), nullptr});
  queue_.back().payload = queue_.back().owned;
}

FrameStream::State FrameStream::pump_out() {
  if (is_cut_) return State::kClosed;
  State state = State::kBlocked;
  if (queue_.empty() && held_) {
    held_ = !channel_.try_flush(peer_);
    if (!held_) state = State::kMoved;
  }
  while (!queue_.empty()) {
    Outgoing& out = queue_.front();
    const std::size_t size = out.header.size() + out.payload.size();
    const std::size_t header_sent = std::min(out.sent, out.header.size());
    const std::array<ConstPiece, 2> pieces = {
        ConstPiece(out.header).subspan(header_sent),
        ConstPiece(out.payload).subspan(out.sent - header_sent),
    };
    const Transfer transfer = channel_.try_send(peer_, pieces);
    held_ = transfer.held;
    if (transfer.closed) return State::kClosed;
    if (transfer.bytes.value == 0) return state;
    state = State::kMoved;
    out.sent += static_cast<std::size_t>(transfer.bytes.value);
    if (out.sent < size) continue;
    const TicketPtr ends = std::move(out.ends);
    queue_.pop_front();
    if (ends) ends->succeed(peer_);
  }
  return state;
}

bool FrameStream::has_borrowed() const {
  return std::any_of(queue_.begin(), queue_.end(), [](const Outgoing& out) { return out.ends; });
}

FrameStream::State FrameStream::pump_in(FrameReader& reader) {
  State state = State::kBlocked;
  while (true) {
    Transfer transfer;
    if (!inside_) {
      if (const std::byte* const header = take_header(transfer)) {
        const auto frame =
            Frame::decode(std::span<const std::byte, Frame::kSize>(header, Frame::kSize));
        if (!frame) return State::kDamaged;
        frame_ = *frame;
        inside_ = true;
        due_ = frame_.payload;
        into_ = reader.begin_frame(peer_, frame_);
      }
    } else {
      take_payload(transfer);
    }
    if (inside_ && due_.value == 0) {
      inside_ = false;
      into_ = {};
      reader.end_frame(peer_, frame_);
      if (fetched_.empty()) return State::kMoved;
      state = State::kMoved;
      continue;
    }
    if (transfer.bytes.value > 0) {
      state = State::kMoved;
    } else {
      return transfer.closed ? State::kClosed : state;
    }
  }
}

const std::byte* FrameStream::take_header(Transfer& transfer) {
  if (fetched_.empty()) {
    transfer = fetch();
    if (fetched_.empty()) return nullptr;
  }
  if (header_have_ == 0 && fetched_.size() >= Frame::kSize) {  // the usual case
    const std::byte* const header = fetched_.data();
    fetched_ = fetched_.subspan(Frame::kSize);
    transfer.bytes = Bytes(Frame::kSize);
    return header;
  }
  transfer = take(std::span(header_).subspan(header_have_));
  header_have_ += static_cast<std::size_t>(transfer.bytes.value);
  if (header_have_ < header_.size()) return nullptr;
  header_have_ = 0;
  return header_.data();
}

void FrameStream::take_payload(Transfer& transfer) {
  if (!into_.empty()) {
    transfer = take(into_);
    into_ = into_.subspan(static_cast<std::size_t>(transfer.bytes.value));
  } else {
    std::array<std::byte, 4096> nowhere;
    const auto room = std::min(nowhere.size(), static_cast<std::size_t>(due_.value));
    transfer = take(std::span(nowhere).first(room));
  }
  due_ -= transfer.bytes;
}

Transfer FrameStream::take(std::span<std::byte> into) {
  if (fetched_.empty()) {
    if (into.size() >= ahead_.size()) return channel_.try_receive(peer_, into);
    const Transfer transfer = fetch();
    if (fetched_.empty()) return transfer;
  }
  const std::size_t size = std::min(into.size(), fetched_.size());
  std::memcpy(into.data(), fetched_.data(), size);
  fetched_ = fetched_.subspan(size);
  return {Bytes(static_cast<std::int64_t>(size)), false};
}

Transfer FrameStream::fetch() {
  const Transfer transfer = channel_.try_receive(peer_, ahead_);
  fetched_ = std::span(ahead_).first(static_cast<std::size_t>(transfer.bytes.value));
  return transfer;
}

void FrameStream::release_borrowed() {
  into_ = {};
  if (queue_.empty()) return;
  queue_.erase(queue_.begin() + (queue_.front().sent > 0 ? 1 : 0), queue_.end());
  if (queue_.empty()) return;
  Outgoing& out = queue_.front();
  out.ends = nullptr;
  if (out.owned.empty()) {
    out.owned.assign(out.payload.begin(), out.payload.end());
    out.payload = out.owned;
  }
}

}  // namespace peal::mail
