#include "peal/train/horovod/context.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <utility>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/train/horovod/elastic_rounds.h"
#include "peal/train/horovod/errors.h"
#include "peal/train/horovod/init_parts.h"
#include "peal/train/horovod/process_set.h"
#include "peal/train/tensors/texts.h"

namespace peal::hvd {
namespace {

Topology topology_among(ProcessGroup& group, const Place& own) {
  std::vector<Place> places;
  for (const std::string& text : train::gather_texts(group, to_text(own))) {
    places.push_back(place_from(text));
  }
  return topology_of(places, group.rank());
}

/// Ascending. Errors: usage (no rank, a rank twice, a rank that is not in the world).
std::vector<Rank> sorted(std::vector<Rank> ranks, int size) {
  std::ranges::sort(ranks);
  const auto text = [&] { return "a process set of the ranks " + text_of(ranks); };
  if (ranks.empty()) throw Error(ErrorKind::kUsage, "a process set needs at least one rank");
  if (std::ranges::adjacent_find(ranks) != ranks.end()) {
    throw Error(ErrorKind::kUsage, text() + " has a rank twice: give each rank once");
  }
  if (ranks.front() < 0 || ranks.back() >= size) {
    throw Error(ErrorKind::kUsage,
                c10::str(text(), " has an unknown rank: ranks go from 0 to ", size - 1));
  }
  return ranks;
}

Guarded<ContextPtr>& the_context() {
  static constinit PerProcess<Guarded<ContextPtr>> own;
  return own.get();
}

}  // namespace

Context::Context(const InitOptions& options, Settings settings)
    : settings_(std::move(settings)),
      is_dynamic_(options.mode == InitOptions::ProcessSets::kDynamic ||
                  settings_.dynamic_process_sets == Switch::kOn),
      leave_backward_(options.leave_backward),
      named_options_(named_options_of(options, settings_)) {
  const ProcessGroupPtr group = meet(options);
  group_.with([&](ProcessGroupPtr& own) { own = group; });
  topology_ = topology_among(*group, own_place(options, settings_, environment_of_rank()));
  if (group->rank() == 0) {
    for (const std::string& remark : remarks_on(environment_names())) {
      named_options_.report(remark);
    }
    write_autotune_log();
    report_unknown_interfaces();
  }
  std::vector<Rank> all(static_cast<std::size_t>(group->size()));
  for (Rank r = 0; r < group->size(); ++r) all[static_cast<std::size_t>(r)] = r;
  if (!settings_.timeline.empty() && settings_.timeline != "DYNAMIC") {
    start_timeline(settings_.timeline,
                   settings_.timeline_marks_rounds == Switch::kOn
                       ? named::Timeline::Rounds::kMarked
                       : named::Timeline::Rounds::kNotShown);
  }
  world_ = std::make_shared<ProcessSetState>(0, all, group->rank(), group, named_options_);
  sets_.with([&](Sets& sets) { sets.by_id[0] = world_; });
  std::string lists;
  std::vector<std::vector<Rank>> wanted;
  for (const std::vector<Rank>& ranks : options.process_sets) {
    wanted.push_back(sorted(ranks, group->size()));
    lists += text_of(wanted.back());
  }
  agree("process_sets", lists);
  for (std::vector<Rank>& ranks : wanted) {
    require_new(ranks);
    make_set(std::move(ranks));
  }
}

ProcessGroupPtr Context::meet(const InitOptions& options) {
  if (!is_in_elastic_job()) return init_process_group(meeting_of(options, settings_));
  if (!options.ranks.empty()) {
    throw Error(ErrorKind::kUsage, "init: in an elastic job all ranks take part");
  }
  const rendezvous::ElasticAssignment place = take_elastic_place(options.interrupt);
  set_elastic_place(settings_, place);
  peal::InitOptions meeting = meeting_of(options, settings_);
  meeting.store = place.store;
  meeting.is_whole_job = false;
  meeting.is_of_job = false;
  meeting.flight_dir = place.records;
  return init_process_group(meeting);
}

Context::~Context() {
  if (is_of_this_process()) close();
}

ProcessGroupPtr Context::group() const {
  return group_.with([](const ProcessGroupPtr& group) { return group; });
}

ProcessSetPtr Context::set(int id) const {
  if (id == 0) return world_;
  ProcessSetPtr found = sets_.with([&](const Sets& sets) {
    const auto at = sets.by_id.find(id);
    return at == sets.by_id.end() ? nullptr : at->second;
  });
  if (found) return found;
  throw Error(
      ErrorKind::kUsage,
      c10::str("process set ", id, " is not registered: pass it to init or add_process_set"));
}

std::vector<int> Context::set_ids() const {
  return sets_.with([](const Sets& sets) {
    std::vector<int> ids;
    for (const auto& [id, set] : sets.by_id) ids.push_back(id);
    return ids;
  });
}

/// Returns if all ranks pass the same detail.
void Context::agree(const std::string& name, const std::string& detail) {
  const auto operations = world_->operations();
  if (!operations) throw Error(ErrorKind::kUsage, "Horovod has been shut down; use hvd.init().");
  named::Request request;
  request.name = name;
  request.kind = named::Kind::kAgreement;
  request.detail = detail;
  request.remembered = false;
  const auto operation =
      operations->submit({std::move(request), {}}, named::NamedOperations::Waits::kAtOnce);
  internal_errors([&] { operations->wait(*operation); });
}

void Context::require_new(const std::vector<Rank>& ranks) const {
  sets_.with([&](const Sets& sets) {
    for (const auto& [id, set] : sets.by_id) {
      if (set->ranks() != ranks) continue;
      throw Error(ErrorKind::kUsage,
                  c10::str("a process set of the ranks ",
                           text_of(ranks),
                           " exists already: it has the id ",
                           id));
    }
  });
}

void Context::require_dynamic(const char* change) const {
  if (is_dynamic_) return;
  throw Error(ErrorKind::kUsage,
              c10::str("Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow ",
                       change,
                       " process sets after Horovod has been initialized."));
}

int Context::make_set(std::vector<Rank> ranks) {
  const int id = sets_.with([](Sets& sets) { return sets.next_id++; });
  const ProcessGroupPtr all = group();
  const bool is_member = std::ranges::binary_search(ranks, all->rank());
  const ProcessGroupPtr own = is_member ? all->new_group(ranks) : nullptr;
  auto state =
      std::make_shared<ProcessSetState>(id, std::move(ranks), all->rank(), own, named_options_);
  sets_.with([&](Sets& sets) { sets.by_id[id] = std::move(state); });
  return id;
}

int Context::add_set(std::vector<Rank> ranks) {
  require_dynamic("adding");
  ranks = sorted(std::move(ranks), world_->size());
  require_new(ranks);
  agree("add_process_set", text_of(ranks));
  return make_set(std::move(ranks));
}

bool Context::remove_set(int id) {
  require_dynamic("removing");
  const ProcessSetPtr removed = sets_.with([&](Sets& sets) {
    const auto found = sets.by_id.find(id);
    return found == sets.by_id.end() ? nullptr : found->second;
  });
  if (id == 0 || !removed) return false;
  agree("remove_process_set", std::to_string(id));
  sets_.with([&](Sets& sets) { sets.by_id.erase(id); });
  removed->close();
  return true;
}

void Context::start_timeline(const std::string& path, named::Timeline::Rounds rounds) {
  constexpr std::string_view kRank = "{rank}";
  std::string own = path;
  const auto at = own.find(kRank);
  if (at != std::string::npos) {
    own.replace(at, kRank.size(), std::to_string(group()->rank()));
  } else if (group()->rank() != 0) {
    return;
  }
  named_options_.timeline->start(own, rounds);
}

void Context::leave_backward(const std::exception_ptr& error) const {
  if (leave_backward_) leave_backward_(error);
}

/// Ranks on one host may have met by shared memory, which does not look at the interfaces.
void Context::report_unknown_interfaces() const {
  if (settings_.interfaces.empty()) return;
  try {
    const auto known = rendezvous::own_interfaces();
    rendezvous::choose_addresses(known, settings_.interfaces, rendezvous::Reach::kThisHost);
  } catch (const Error& error) {
    report(
        c10::str("the network interface of HOROVOD_GLOO_IFACE is wrong, but these ranks do not "
                 "need one: ",
                 error.message()));
  }
}

/// Horovod's format: the best values in the last row. The fusion threshold is in MiB.
void Context::write_autotune_log() const {
  if (settings_.autotune == Switch::kOff || settings_.autotune_log.empty()) return;
  std::ofstream file(settings_.autotune_log);
  file << "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
          "cycle_time_ms,tensor_fusion_threshold,score\n"
       << "0,0,0," << (settings_.cache_capacity > 0 ? 1 : 0) << ",0,"
       << settings_.fusion_threshold.value / (1 << 20) << ",0\n";
  if (!file.flush()) named_options_.report("cannot write " + settings_.autotune_log);
}

void Context::close() {
  auto sets = sets_.with([](Sets& all) { return std::exchange(all.by_id, {}); });
  // The newest first, because its group was made of the world's.
  for (auto one = sets.rbegin(); one != sets.rend(); ++one) one->second->close();
  named_options_.timeline->stop();
  group_.with([](ProcessGroupPtr& group) { return std::exchange(group, nullptr); });
}

ContextPtr try_current() {
  return the_context().with([](const ContextPtr& context) { return context; });
}

ContextPtr current() {
  ContextPtr context = try_current();
  if (context) return context;
  throw Error(ErrorKind::kUsage, "Horovod has not been initialized; use hvd.init().");
}

// ---- the public functions

void init(const InitOptions& options) {
  if (is_initialized()) return;
  auto made = std::make_shared<Context>(options, read_settings(environment_of_rank()));
  the_context().with([&](ContextPtr& context) { context = std::move(made); });
}

void shutdown() {
  const ContextPtr ended =
      the_context().with([](ContextPtr& context) { return std::exchange(context, nullptr); });
  if (ended) ended->close();
}

bool is_initialized() { return try_current() != nullptr; }

Rank rank() { return current()->world()->rank(); }
int size() { return current()->world()->size(); }
Rank local_rank() { return current()->topology().local_rank; }
int local_size() { return current()->topology().local_size; }
Rank cross_rank() { return current()->topology().cross_rank; }
int cross_size() { return current()->topology().cross_size; }
bool is_homogeneous() { return current()->topology().is_homogeneous; }
ProcessGroupPtr process_group() { return current()->group(); }

void start_timeline(const std::string& path, MarkCycles mark) {
  const ContextPtr context = current();
  if (context->settings().timeline.empty()) {
    throw Error(ErrorKind::kUsage,
                "Set HOROVOD_TIMELINE=DYNAMIC before init to start a timeline later.");
  }
  context->start_timeline(path,
                          mark == MarkCycles::kYes ? named::Timeline::Rounds::kMarked
                                                   : named::Timeline::Rounds::kNotShown);
}

void stop_timeline() { current()->timeline().stop(); }

// ---- process sets

std::vector<Rank> ProcessSet::ranks() const { return current()->set(id_)->ranks(); }
int ProcessSet::size() const { return current()->set(id_)->size(); }
Rank ProcessSet::rank() const { return current()->set(id_)->rank(); }
bool ProcessSet::included() const { return current()->set(id_)->included(); }

ProcessSet add_process_set(std::vector<Rank> ranks) {
  return ProcessSet(current()->add_set(std::move(ranks)));
}

bool remove_process_set(const ProcessSet& set) { return current()->remove_set(set.id()); }

std::vector<ProcessSet> process_sets() {
  std::vector<ProcessSet> sets;
  for (const int id : current()->set_ids()) sets.emplace_back(id);
  return sets;
}

}  // namespace peal::hvd
