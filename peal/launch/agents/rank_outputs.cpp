#include "peal/launch/agents/rank_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/system/open_files.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

constexpr long kFilesOfTheAgent = 64;
/// Open files of one rank: two pipe ends, and a reserve.
constexpr long kFilesOfARank = 8;
/// The bytes of one read.
constexpr std::size_t kMostOutput = 1 << 16;

}  // namespace

RankOutputs::Writers RankOutputs::add(Rank rank) {
  allow_open_files(kFilesOfTheAgent + kFilesOfARank * (std::ssize(streams_) + 1), "one more rank");
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  for (const Pipe* pipe : {&out, &err}) ::fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
  streams_[rank] = {std::move(out.reader), std::move(err.reader)};
  return {std::move(out.writer), std::move(err.writer)};
}

void RankOutputs::add_to(std::vector<pollfd>& entries) const {
  for (const auto& [rank, streams] : streams_) {
    for (const Fd* fd : {&streams.out, &streams.err}) {
      entries.push_back({link_.is_full() ? -1 : fd->get(), POLLIN, 0});
    }
  }
}

void RankOutputs::read(std::span<const pollfd> entries) {
  std::size_t i = 0;
  for (const auto& [rank, streams] : streams_) {
    if (entries[i++].revents != 0) read_some(rank, Channel::kOut);
    if (entries[i++].revents != 0) read_some(rank, Channel::kErr);
  }
  std::erase_if(streams_, [](const auto& entry) { return !entry.second.out && !entry.second.err; });
}

bool RankOutputs::read_some(Rank rank, Channel channel) {
  Streams& streams = streams_.at(rank);
  Fd& fd = channel == Channel::kOut ? streams.out : streams.err;
  if (!fd) return false;
  std::string bytes(kMostOutput, '\0');
  const auto got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (bytes.empty()) fd.reset();
  link_.send(FrameKind::kOutput, encode(Output{rank, channel, std::move(bytes)}));
  return got > 0;
}

void RankOutputs::drain(Rank rank) {
  if (!streams_.contains(rank)) return;
  for (const Channel channel : {Channel::kOut, Channel::kErr}) {
    while (!link_.is_full() && read_some(rank, channel)) {
    }
  }
}

}  // namespace peal::launch::agents
