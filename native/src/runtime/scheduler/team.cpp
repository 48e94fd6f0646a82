#include "team.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <set>

#include "affinity.hpp"
#include "stacks/overflow.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

// Half of the numbers that domains have: each worker takes one.
constexpr int kMostWorkers = 32768;
constexpr std::size_t kMostTraceEvents = std::size_t{1} << 30;  // 16 GiB a worker

const RuntimeOptions& checked(const RuntimeOptions& options) {
  if (options.workers < 0) {
    throw RuntimeFault("workers is " + std::to_string(options.workers) +
                       ": give 1 or more, or 0 for one per core");
  }
  if (options.workers > kMostWorkers) {
    throw RuntimeFault("workers is " + std::to_string(options.workers) + ": give at most " +
                       std::to_string(kMostWorkers) + ", or 0 for one per core");
  }
  if (options.interval < std::chrono::milliseconds(1)) {
    throw RuntimeFault("interval is " + std::to_string(options.interval.count()) +
                       " ms: give 1 or more");
  }
  if (options.trace_events > kMostTraceEvents) {
    throw RuntimeFault("trace_events is " + std::to_string(options.trace_events) +
                       ": give at most " + std::to_string(kMostTraceEvents));
  }
  return options;
}

int worker_count(const Places& places, const RuntimeOptions& options) {
  return options.workers == 0 ? static_cast<int>(places.cores.size()) : options.workers;
}

// How many CPUs of the places the process may use.
int cpus_for(const Places& places) {
  const std::vector<int> allowed = cpus_of_this_thread();
  std::set<int> cpus;
  for (const Core& core : places.cores) {
    std::set_intersection(core.cpus.begin(), core.cpus.end(), allowed.begin(), allowed.end(),
                          std::inserter(cpus, cpus.end()));
  }
  return static_cast<int>(cpus.size());
}

int next_number() {
  static std::atomic<int> last{0};
  return ++last;
}

Places places_of(const RuntimeOptions& options) {
  Places places = options.places ? *options.places : places_here();
  if (places.cores.empty()) throw RuntimeFault("the places have no core: nothing to sit on");
  return places;
}

}  // namespace

Team::Team(const RuntimeOptions& options)
    : places(places_of(checked(options))),
      lent(options.lent),
      own_cpus(cpus_for(places) >= worker_count(places, options)),
      pins_(options.pin),
      usable_(usable_cores(places, cpus_of_this_thread())),
      core_of_worker_(seat_workers(places, usable_, worker_count(places, options), 1)),
      domains(core_of_worker_.size()),
      parking(static_cast<int>(core_of_worker_.size())),
      stacks(options.stacks, places.nodes()),
      nodes_(places.nodes()),
      workers_(core_of_worker_.size()),
      thread_of_worker_(core_of_worker_.size()),
      everybody_(core_of_worker_.size()),
      seated_(static_cast<std::ptrdiff_t>(core_of_worker_.size())),
      left_(static_cast<std::ptrdiff_t>(core_of_worker_.size())),
      number_(next_number()),
      process_(getpid()) {
  std::iota(everybody_.begin(), everybody_.end(), 0);
  first_worker_domain_ = 1;
  for (const int rank : everybody_) domains.add({&rank, 1});
  first_chiplet_domain_ = first_worker_domain_ + everybody_.size();
  for (int chiplet = 0; chiplet < places.chiplets(); ++chiplet) domains.add({});
  first_node_domain_ = first_chiplet_domain_ + static_cast<std::size_t>(places.chiplets());
  for (std::size_t node = 0; node < nodes_.size(); ++node) domains.add({});
  update_members();
  bound_.resize(core_of_worker_.size());
  if (lent && lent->share_chiplets) share_chiplets();
  steered_ = std::make_shared<Steered>();
  steered_->approach =
      options.own_approach ? options.own_approach : approach_by_name(options.approach, next_seed());
  steered_->threads = size();
  steered_->working_set_bytes = options.working_set_bytes;
  steered_->workers = [this] { return everybody_; };
  steered_->seat = [this](Steered& steered, int spread) {
    const SpreadBounds limits = bounds();
    steered.min_spread = limits.least;
    steered.max_spread = limits.most;
    steered.spread = limits.clamp(spread);
    place(steered.spread);
  };
  install_overflow_handler();
  try {
    for (const int rank : everybody_) threads_.emplace_back(Worker::main, std::ref(*this), rank);
    seated_.wait();
    if (fault_ != nullptr) std::rethrow_exception(fault_);
    std::vector<WorkerCounts*> counts;
    for (Worker* worker : workers_) counts.push_back(&worker->counts);
    profiler_ = std::make_unique<Profiler>(
        counts, ProfilerOptions{options.trace_events, options.count_fills, options.count_l3});
    // The last thread: workers that were let in before it could no longer be told to end.
    governor_ = std::make_unique<Governor>(*this, options);
    opened_.count_down();
  } catch (...) {
    const std::size_t started = threads_.size();
    // Those that run wait for the others to sit; they shall see the end instead.
    const auto missing = static_cast<std::ptrdiff_t>(everybody_.size() - started);
    stopping_.store(true, std::memory_order_release);
    seated_.count_down(missing);
    left_.count_down(missing);
    if (!opened_.try_wait()) opened_.count_down();
    stop();
    try {
      throw;
    } catch (const std::system_error&) {
      throw RuntimeFault("only " + std::to_string(started) + " of " +
                         std::to_string(everybody_.size() + 1) +
                         " threads could be started: raise the limit of threads (ulimit -u, the "
                         "cgroup's pids.max) or ask for fewer workers");
    }
  }
  governor_->add(steered_);
}

std::uint64_t Team::next_seed() { return seeds_.fetch_add(1, std::memory_order_relaxed); }

Team::~Team() {
  if (getpid() != process_) {
    // fork() copies the calling thread alone: there is nobody to wait for. What names the threads
    // of the parent is left alone: their numbers may be those of threads made here since.
    static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
    static_cast<void>(governor_.release());
    static_cast<void>(profiler_.release());  // it would end the parent's monitoring
    return;
  }
  for (auto pause = std::chrono::microseconds(50); tasks_left();
       pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
    std::this_thread::sleep_for(pause);
  }
  governor_.reset();  // it looks at workers
  stop();
  // Acquire: they are through with all that goes now. Some instructions, but for preemption.
  while (visitors_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

void Team::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  stopping_.notify_all();
  parking.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Team::tasks_left() const {
  // Ends are read before beginnings: a task counted as ended is then counted as begun.
  std::uint64_t ended = 0;
  for (const Worker* worker : workers_) ended += worker->ended.read_acquired();
  std::uint64_t begun = spawned_outside.load(std::memory_order_acquire);
  for (const Worker* worker : workers_) begun += worker->spawned.read();
  return begun != ended;
}

void Team::seat(int rank, int thread) {
  const std::lock_guard lock(placing_);
  thread_of_worker_[static_cast<std::size_t>(rank)] = thread;
  if (pins()) bind(static_cast<std::size_t>(rank));
}

const std::vector<int>& Team::seat_cpus(std::size_t rank) const {
  const Core& core = places.cores[static_cast<std::size_t>(core_of_worker_[rank])];
  return shared_.empty() ? core.cpus : shared_[static_cast<std::size_t>(core.chiplet)];
}

// The CPUs of each chiplet's usable cores.
void Team::share_chiplets() {
  shared_.assign(static_cast<std::size_t>(places.chiplets()), {});
  for (const int core : usable_) {
    const Core& one = places.cores[static_cast<std::size_t>(core)];
    std::vector<int>& cpus = shared_[static_cast<std::size_t>(one.chiplet)];
    cpus.insert(cpus.end(), one.cpus.begin(), one.cpus.end());
  }
  for (std::vector<int>& cpus : shared_) {
    std::ranges::sort(cpus);  // made-up cores share CPUs
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  }
}

// To its seat, unless it is; not pinned: to all CPUs that the process may use.
void Team::bind(std::size_t rank) {
  std::vector<int> cpus;
  if (pins()) {
    cpus = seat_cpus(rank);
  } else {
    for (const int core : usable_) {
      const std::vector<int>& of_core = places.cores[static_cast<std::size_t>(core)].cpus;
      cpus.insert(cpus.end(), of_core.begin(), of_core.end());
    }
  }
  if (cpus == bound_[rank]) return;
  bind_thread(thread_of_worker_[rank], cpus);
  bound_[rank] = std::move(cpus);
}

void Team::set_pin(bool pin) {
  const std::lock_guard lock(placing_);
  pins_.store(pin, std::memory_order_relaxed);
  for (const int rank : everybody_) bind(static_cast<std::size_t>(rank));
}

void Team::announce(Worker& worker) {
  workers_[static_cast<std::size_t>(worker.rank)] = &worker;
  seated_.count_down();
  opened_.wait();
}

void Team::announce_fault(std::exception_ptr fault) {
  {
    const std::lock_guard lock(placing_);
    fault_ = std::move(fault);
  }
  seated_.count_down();
  opened_.wait();
}

std::vector<int> Team::cores() const {
  const std::lock_guard lock(placing_);
  return core_of_worker_;
}

std::vector<int> Team::cpus_of_node(int node) const {
  std::vector<int> cpus;
  if (!pins() || nodes_.size() == 1) return cpus;
  for (const int core : places.cores_of_node(node)) {
    const std::vector<int>& of_core = places.cores[static_cast<std::size_t>(core)].cpus;
    cpus.insert(cpus.end(), of_core.begin(), of_core.end());
  }
  return cpus;
}

NodeMap Team::node_map() const {
  NodeMap map{nodes_, {}, number_};
  for (const int core : cores()) {
    map.node_of_rank.push_back(places.cores[static_cast<std::size_t>(core)].node);
  }
  return map;
}

SpreadBounds Team::bounds() const {
  const std::lock_guard lock(placing_);
  return worker_bounds(places, usable_, size());
}

bool Team::restrict_to(std::span<const int> cpus) {
  const std::lock_guard lock(placing_);
  std::vector<int> cores = usable_cores(places, cpus);
  if (cores == usable_) return false;
  usable_ = std::move(cores);
  if (!shared_.empty()) share_chiplets();
  bound_.assign(bound_.size(), {});  // who changed the mask has changed the workers' too
  return true;
}

void Team::place(int spread) {
  const std::lock_guard lock(placing_);
  std::vector<int> cores = seat_workers(places, usable_, size(), spread);
  for (const int rank : everybody_) {
    const auto at = static_cast<std::size_t>(rank);
    core_of_worker_[at] = cores[at];
    if (pins()) bind(at);
  }
  update_members();
  if (lent) {
    std::vector<Seat> seats;
    for (const int rank : everybody_) {
      const auto at = static_cast<std::size_t>(rank);
      seats.push_back({core_of_worker_[at], seat_cpus(at)});
    }
    lent->placed(seats);
  }
  placement_.fetch_add(1, std::memory_order_acq_rel);
  // Tasks may wait for somebody who sleeps and has just become a member.
  parking.notify_all();
}

void Team::update_members() {
  std::vector<std::vector<int>> on_chiplet(static_cast<std::size_t>(places.chiplets()));
  std::vector<std::vector<int>> on_node(nodes_.size());
  for (const int rank : everybody_) {
    const Core& core =
        places.cores[static_cast<std::size_t>(core_of_worker_[static_cast<std::size_t>(rank)])];
    on_chiplet[static_cast<std::size_t>(core.chiplet)].push_back(rank);
    const auto node = std::lower_bound(nodes_.begin(), nodes_.end(), core.node) - nodes_.begin();
    on_node[static_cast<std::size_t>(node)].push_back(rank);
  }
  for (std::size_t at = 0; at < on_chiplet.size(); ++at) {
    domains.set_members(first_chiplet_domain_ + at, on_chiplet[at]);
  }
  for (std::size_t at = 0; at < on_node.size(); ++at) {
    domains.set_members(first_node_domain_ + at, on_node[at]);
  }
}

// The index says whose group it is, so that no other runtime takes it for one of its own.
Place Team::place_of_group(std::size_t domain) const {
  constexpr int kMostNumbers = 0x8000;  // what an int has room for beside a domain
  return {Place::Kind::group,
          number_ % kMostNumbers * static_cast<int>(Domains::kMost) + static_cast<int>(domain)};
}

Word Team::tag_of(Place place) const {
  const auto fault = [&](const std::string& what, const std::string& range) -> Word {
    throw RuntimeFault("there is no " + what + " " + std::to_string(place.index) +
                       " in this runtime: " + range);
  };
  const auto shifted = [](std::size_t number) { return Word{number} << detail::kDomainShift; };
  switch (place.kind) {
    case Place::Kind::anywhere: return 0;
    case Place::Kind::worker:
      if (place.index < 0 || place.index >= size()) {
        return fault("worker", "it has " + std::to_string(size()) + ", from 0");
      }
      return shifted(first_worker_domain_ + static_cast<std::size_t>(place.index));
    case Place::Kind::core: {
      const std::lock_guard lock(placing_);
      const auto at = std::find(core_of_worker_.begin(), core_of_worker_.end(), place.index);
      if (at == core_of_worker_.end()) return fault("worker on core", "see Runtime::cores()");
      return shifted(first_worker_domain_ + static_cast<std::size_t>(at - core_of_worker_.begin()));
    }
    case Place::Kind::chiplet:
      if (place.index < 0 || place.index >= places.chiplets()) {
        return fault("chiplet", "it has " + std::to_string(places.chiplets()) + ", from 0");
      }
      return shifted(first_chiplet_domain_ + static_cast<std::size_t>(place.index));
    case Place::Kind::node: {
      const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), place.index);
      if (at == nodes_.end() || *at != place.index) return fault("node", "see Places::nodes()");
      return shifted(first_node_domain_ + static_cast<std::size_t>(at - nodes_.begin()));
    }
    case Place::Kind::group: {
      const std::size_t domain = static_cast<std::size_t>(place.index) % Domains::kMost;
      if (place_of_group(domain) != place) {
        throw RuntimeFault(
            "the place of a group that is of another runtime: give it to its own Runtime's spawn");
      }
      return shifted(domain);
    }
  }
  __builtin_unreachable();
}

void Team::inject_as_visitor(Word word) {
  struct Visit {
    explicit Visit(std::atomic<int>& visitors) : visitors_(visitors) {
      visitors_.fetch_add(1, std::memory_order_relaxed);  // ordered by the task, not yet out
    }
    ~Visit() { visitors_.fetch_sub(1, std::memory_order_release); }
    std::atomic<int>& visitors_;
  };
  const Visit visit(visitors_);  // inject may throw
  inject(word);
}

void Team::inject(Word word) {
  Domain& domain = domains.of(word);
  domain.push(word);
  parking.notify_allowed(everybody_, [&](int rank) { return domain.allows(rank); });
}

void Team::check_process() const {
  if (getpid() != process_) {
    throw RuntimeFault(
        "this Runtime was made before fork(), which does not copy its workers: make one in the "
        "child");
  }
}

}  // namespace atl::runtime
