#include "atoll/runtime/runtime.hpp"

#include "worker.hpp"

namespace atl {

using runtime::Worker;

Runtime::Runtime(const RuntimeOptions& options)
    : team_(std::make_unique<runtime::Team>(runtime::decided(options))) {}

Runtime::~Runtime() = default;

detail::Word Runtime::tag_of(Place place) const {
  team_->check_process();
  if (team_->lent) throw RuntimeFault("the workers of this runtime are lent: it runs no tasks");
  return team_->place_domains.tag_of(place);
}

void Runtime::start(detail::Job* job, detail::Word tag, bool urgent) {
  Worker* const worker = Worker::here();
  if (worker != nullptr && &worker->team == team_.get()) {
    detail::start_placed(worker, job, tag, urgent);
    return;
  }
  team_->spawned_outside.fetch_add(1, std::memory_order_relaxed);
  if (tag != 0) team_->domains.of(tag).count_begun();
  // The task may run, and tell another that the runtime may go, before this has returned.
  team_->inject_as_visitor(detail::word_of(job, detail::WordKind::job, tag), urgent);
}

void Runtime::run_here(detail::Job* job, const detail::Completion& end) {
  if (!team_->run_on_caller(job, end)) start(job, 0, false);
}

int Runtime::spread() const {
  return team_->governor().locked([&] { return team_->steered().spread; });
}

void Runtime::set_spread(int spread) { team_->governor().set_spread(team_->steered(), spread); }

void Runtime::look() { team_->governor().look(); }

void Runtime::set_pin(bool pin) { team_->set_pin(pin); }

std::string Runtime::reason() const {
  return team_->governor().locked([&] { return team_->steered().reason; });
}

int Runtime::workers() const { return team_->size(); }

const Places& Runtime::places() const { return team_->seats.places; }

std::vector<int> Runtime::cores() const { return team_->seats.cores(); }

NodeMap Runtime::node_map() const { return team_->node_map(); }

Profile Runtime::profile() const {
  Profile profile = team_->profiler().snapshot();
  team_->governor().locked([&] {
    const runtime::Steered& steered = team_->steered();
    profile.working_set_bytes = steered.working_set_bytes;
    if (steered.working_set_bytes) {
      profile.working_set_source = working_set_source_name(steered.working_set_source);
    } else if (steered.measures_set) {
      profile.remarks.emplace_back(
          "working set: n/a (not measured yet, or neither resctrl nor fills from L3 and memory are "
          "here); give RuntimeOptions::working_set_bytes");
    }
  });
  profile.remarks.insert(profile.remarks.begin(), team_->remarks.begin(), team_->remarks.end());
  std::uint64_t stand_ins = 0;
  for (int rank = 0; rank < team_->size(); ++rank) stand_ins += team_->worker(rank).stand_ins();
  if (stand_ins > 0) {
    profile.remarks.push_back(std::to_string(stand_ins) +
                              " calls of run ran on their callers' threads: usage and fills are "
                              "those of the workers' own threads");
  }
  return profile;
}

void Runtime::write_trace(const std::string& path) const { team_->profiler().write_trace(path); }

std::vector<Counts> Runtime::counts() const {
  std::vector<Counts> counts;
  for (int rank = 0; rank < team_->size(); ++rank) {
    counts.push_back(read_counts(team_->worker(rank).counts));
  }
  return counts;
}

}  // namespace atl
