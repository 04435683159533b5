#include "peal/launch/elastic/worker_outputs.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "peal/base/error.h"
#include "peal/launch/label.h"
#include "peal/launch/rank_log.h"
#include "peal/system/pipe.h"

namespace peal::launch::elastic {
namespace {

bool is_open(const std::unique_ptr<RankStream>& stream) { return stream->fd() >= 0; }

}  // namespace

WorkerWriters WorkerOutputs::add(int worker, const std::string& name, const std::string& log) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Streams& streams = streams_[worker];
  try {
    streams.out = open(std::move(out.reader), Channel::kOut, name, log, streams.tail);
    streams.err = open(std::move(err.reader), Channel::kErr, name, log, streams.tail);
  } catch (const Error&) {
    streams_.erase(worker);
    throw;
  }
  return {std::move(out.writer), std::move(err.writer)};
}

std::unique_ptr<RankStream> WorkerOutputs::open(
    Fd reader, Channel channel, const std::string& name, const std::string& log, Tail& tail) const {
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  RankStream::Way way{
      .pipe = std::move(reader),
      .log = open_log(options_, log, channel),
      .channel = channel,
      .label = label_of(options_.labels, name, channel),
      .timestamps = options_.timestamps,
      .progress = Progress::kHide,
  };
  return std::make_unique<RankStream>(std::move(way), screen_, tail);
}

void WorkerOutputs::add_to(std::vector<pollfd>& entries) const {
  for (const auto& [worker, streams] : streams_) {
    for (const auto& stream : {&streams.out, &streams.err}) {
      entries.push_back({screen_.is_full() ? -1 : (*stream)->fd(), POLLIN, 0});
    }
  }
}

void WorkerOutputs::handle(std::span<const pollfd> entries) {
  std::size_t i = 0;
  for (auto& [worker, streams] : streams_) {
    if (i + 1 >= entries.size()) break;  // the worker was added since
    if (entries[i++].revents != 0) streams.out->read_some();
    if (entries[i++].revents != 0) streams.err->read_some();
  }
  forget_ended();
}

void WorkerOutputs::drain(int worker) {
  const auto found = streams_.find(worker);
  if (found == streams_.end()) return;
  for (RankStream* stream : {found->second.out.get(), found->second.err.get()}) {
    pollfd entry{stream->fd(), POLLIN, 0};
    while (stream->fd() >= 0 && !screen_.is_full() && ::poll(&entry, 1, 0) == 1) {
      stream->read_some();
    }
  }
  last_lines_[worker] = found->second.tail.lines();
  forget_ended();
}

void WorkerOutputs::forget_ended() {
  std::erase_if(streams_, [&](const auto& entry) {
    const auto& [worker, streams] = entry;
    if (is_open(streams.out) || is_open(streams.err)) return false;
    last_lines_[worker] = streams.tail.lines();
    for (const auto& stream : {&streams.out, &streams.err}) {
      if ((*stream)->lost_in_log().error != 0) lost_.push_back((*stream)->lost_in_log());
    }
    return true;
  });
}

void WorkerOutputs::finish() {
  for (auto& [worker, streams] : streams_) {
    if (is_open(streams.out)) streams.out->finish();
    if (is_open(streams.err)) streams.err->finish();
  }
  forget_ended();
}

bool WorkerOutputs::are_closed() const { return streams_.empty(); }

std::vector<std::string> WorkerOutputs::last_lines(int worker) const {
  const auto open = streams_.find(worker);
  if (open != streams_.end()) return open->second.tail.lines();
  const auto ended = last_lines_.find(worker);
  return ended == last_lines_.end() ? std::vector<std::string>() : ended->second;
}

std::vector<LostOutput> WorkerOutputs::lost() const { return lost_; }

}  // namespace peal::launch::elastic
