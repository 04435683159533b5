#include "peal/launch/outputs.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/label.h"
#include "peal/launch/rank_log.h"
#include "peal/system/open_files.h"
#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// "rank-3", or "rank.03" as in horovodrun.
std::string log_name(const LaunchOptions& options, Rank rank) {
  if (options.log_names == LogNames::kFiles) return fmt::format("rank-{}", rank);
  const auto width = fmt::formatted_size("{}", world_size_of(options) - 1);
  return fmt::format("rank.{:0{}}", rank, width);
}

Display display_of(const LaunchOptions& options, int local_rank, Channel channel) {
  const auto& hidden = channel == Channel::kOut ? options.hidden_out : options.hidden_err;
  return std::ranges::count(hidden, local_rank) > 0 ? Display::kHide : Display::kShow;
}

/// The descriptors of a launch: for both streams of each rank, two pipe ends and a log.
long descriptors_of(const LaunchOptions& options) {
  constexpr long kForOthers = 64;
  const long for_each = options.log_directory.empty() ? 4 : 6;
  return kForOthers + for_each * options.ranks;
}

}  // namespace

int line_width(const LaunchOptions& options, const Target& out) {
  winsize size{};
  if (out.kind == Target::Kind::kFile || ::ioctl(out.fd, TIOCGWINSZ, &size) != 0) return 0;
  const std::size_t label = longest_label(options);
  return size.ws_col > label ? static_cast<int>(size.ws_col - label) : 0;
}

Outputs::Outputs(const LaunchOptions& options, Target out, Target err)
    : first_rank_(first_rank_of(options)),
      screen_(out, err),
      tails_(static_cast<std::size_t>(options.ranks)) {
  allow_open_files(descriptors_of(options), fmt::format("starting {} ranks", options.ranks));
  for (Rank rank = first_rank_; rank < first_rank_ + options.ranks; ++rank) {
    add_stream(options, rank, Channel::kOut);
    add_stream(options, rank, Channel::kErr);
  }
}

void Outputs::add_stream(const LaunchOptions& options, Rank rank, Channel channel) {
  std::optional<Pipe> pipe = try_make_pipe();
  if (!pipe) throw system_error("cannot make the pipes for the ranks' output", errno);
  ::fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
  RankStream::Way way{
      .pipe = std::move(pipe->reader),
      .log = {},
      .channel = channel,
      .label = label_of(options, rank, channel),
      .timestamps = options.timestamps,
      .progress = rank == first_rank_ ? Progress::kShow : Progress::kHide,
      .display = display_of(options, rank - first_rank_, channel),
  };
  writers_.push_back(std::move(pipe->writer));
  way.log = open_log(options, log_name(options, rank), channel);
  Tail& tail = tails_[index_of(rank)];
  streams_.push_back(std::make_unique<RankStream>(std::move(way), screen_, tail));
}

std::vector<int> Outputs::writers() const {
  std::vector<int> fds;
  for (const Fd& writer : writers_) fds.push_back(writer.get());
  return fds;
}

void Outputs::add_to(std::vector<pollfd>& entries) const {
  for (const auto& stream : streams_) {
    // poll ignores negative descriptors
    entries.push_back({screen_.is_full() ? -1 : stream->fd(), POLLIN, 0});
  }
  entries.push_back({screen_.waits_for(), POLLOUT, 0});
}

void Outputs::handle(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (entries[i].revents != 0) streams_[i]->read_some();
  }
  screen_.write_some();
}

void Outputs::finish() {
  for (const auto& stream : streams_) stream->finish();
}

bool Outputs::is_done() const {
  return screen_.is_empty() &&
         std::all_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->fd() < 0; });
}

std::vector<LostOutput> Outputs::lost() const {
  std::vector<LostOutput> all = {screen_.lost(Channel::kOut), screen_.lost(Channel::kErr)};
  for (const auto& stream : streams_) all.push_back(stream->lost_in_log());
  std::erase_if(all, [](const LostOutput& lost) { return lost.error == 0; });
  return all;
}

std::vector<std::string> Outputs::last_lines(Rank rank) const {
  return tails_[index_of(rank)].lines();
}

}  // namespace peal::launch
