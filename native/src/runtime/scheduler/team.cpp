#include "team.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>

#include "affinity.hpp"
#include "process.hpp"
#include "stacks/overflow.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

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

std::vector<int> chiplets_of_cpus(const Places& places) {
  std::vector<int> chiplet_of_cpu;
  for (const Core& core : places.cores) {
    for (const int cpu : core.cpus) {
      const auto at = static_cast<std::size_t>(cpu);
      if (at >= chiplet_of_cpu.size()) chiplet_of_cpu.resize(at + 1, -1);
      if (chiplet_of_cpu[at] < 0) chiplet_of_cpu[at] = core.chiplet;
    }
  }
  return chiplet_of_cpu;
}

int next_number() {
  static std::atomic<int> last{0};
  return ++last;
}

class AllWorkers final : public Steered {
 public:
  AllWorkers(Team& team, std::shared_ptr<Approach> by, const RuntimeOptions& options)
      : Steered(std::move(by)), team_(team) {
    threads = team.size();
    give_working_set(options.working_set_bytes);
  }
  SpreadBounds limits() override { return team_.seats.bounds(); }
  void seat(int to) override { team_.place(to, *approach); }
  std::span<const int> workers() const override { return team_.everybody(); }

 private:
  Team& team_;
};

}  // namespace

Team::Team(const Decided& all)
    : number_(next_number()),
      lent(all.options.lent),
      remarks(all.remarks),
      seats(*all.options.places, all.options.workers, *all.options.pin,
            lent && lent->share_chiplets),
      steal_costs(runtime::steal_costs(*all.options.latency)),
      own_cpus(cpus_for(seats.places) >= seats.size()),
      domains(static_cast<std::size_t>(seats.size())),
      place_domains(domains, seats),
      anywhere(seats.places.chiplets()),
      parking(seats.size(), seats.places.chiplets()),
      group_seats(seats),
      remembered([](std::string_view key, std::uint64_t seed) {
        return approach_by_name(key.substr(0, key.find(' ')), seed);
      }),
      stacks(all.options.stacks, seats.nodes),
      workers_(static_cast<std::size_t>(seats.size())),
      everybody_(static_cast<std::size_t>(seats.size())),
      chiplet_of_cpu_(chiplets_of_cpus(seats.places)),
      seated_(seats.size()),
      left_(seats.size()),
      forks_before_(forks_before()) {
  const RuntimeOptions& options = all.options;
  std::iota(everybody_.begin(), everybody_.end(), 0);
  steered_ = std::make_unique<AllWorkers>(
      *this,
      options.own_approach ? options.own_approach : approach_by_name(options.approach, next_seed()),
      options);
  install_overflow_handler([]() noexcept -> const Fiber* {
    const Worker* const worker = Worker::here();
    return worker != nullptr ? &worker->fiber() : nullptr;
  });
  try {
    const SignalsBlocked blocked;
    for (const int rank : everybody_) threads_.emplace_back(Worker::main, std::ref(*this), rank);
    seated_.wait();
    if (fault_ != nullptr) std::rethrow_exception(fault_);
    std::vector<WorkerCounts*> counts;
    for (Worker* worker : workers_) counts.push_back(&worker->counts);
    profiler_ = std::make_unique<Profiler>(
        counts, ProfilerOptions{options.trace_events, options.count_fills,
                                options.count_l3 || steered_->measures_set, all.mountinfo,
                                all.devices, &seats.places});
    // Last: if its thread could not start after the workers were let in, nothing could end them.
    governor_ = std::make_unique<Governor>(*this, options);
    governor_->add(*steered_);
    opened_.count_down();
  } catch (...) {
    governor_.reset();  // before the workers, which it reads
    const std::size_t started = threads_.size();
    // The workers that did start wait until all are seated. Count for the missing ones, so that the
    // others continue and find the team stopping.
    const auto missing = static_cast<std::ptrdiff_t>(everybody_.size() - started);
    stopping_.store(true, std::memory_order_release);
    seated_.count_down(missing);
    left_.count_down(missing);
    opened_.count_down();
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
}

std::uint64_t Team::next_seed() { return seeds_.fetch_add(1, std::memory_order_relaxed); }

Team::~Team() {
  if (forks_before() != forks_before_) {
    // fork() copies only the calling thread, so there is no thread to wait for. The objects that
    // hold the parent's threads are leaked: the child may have threads with the same numbers.
    static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
    static_cast<void>(governor_.release());
    static_cast<void>(profiler_.release());  // its destructor would end the parent's monitoring
    return;
  }
  if (const Worker* const worker = Worker::here(); worker != nullptr && &worker->team == this) {
    std::fputs(
        "atoll: a Runtime is destroyed inside one of its own tasks, for which it would wait for "
        "ever: destroy it on a thread, or in a task of another Runtime\n",
        stderr);
    std::abort();
  }
  for (auto pause = std::chrono::microseconds(50); tasks_left();
       pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
    std::this_thread::sleep_for(pause);
  }
  governor_.reset();  // before the workers, which it reads
  stop();
  // Acquire: after this no visitor uses the team, which is destroyed next. A visit takes a few
  // instructions, unless its thread is preempted.
  while (visitors_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

void Team::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  stopping_.notify_all();
  parking.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Team::tasks_left() const {
  // Reads the ends before the beginnings, so that every task it counts as ended counts as begun.
  std::uint64_t ended = ended_outside_.load(std::memory_order_acquire);
  for (const Worker* worker : workers_) ended += worker->ended.read_acquired();
  std::uint64_t begun = spawned_outside.load(std::memory_order_acquire);
  for (const Worker* worker : workers_) begun += worker->spawned.read();
  return begun != ended;
}

void Team::announce(Worker& worker) {
  workers_[static_cast<std::size_t>(worker.rank)] = &worker;
  seated_.count_down();
  opened_.wait();
}

void Team::announce_fault(std::exception_ptr fault) {
  {
    const std::lock_guard lock(fault_mutex_);
    fault_ = std::move(fault);
  }
  seated_.count_down();
  opened_.wait();
}

void Team::place(int spread, const Approach& approach) {
  const std::lock_guard lock(placing_);
  seats.place(spread, approach);
  note_seats();
  place_domains.follow_seats();
  if (lent) lent->placed(seats.seats());
  placement_.fetch_add(1, std::memory_order_acq_rel);
  // Tasks may be waiting for a sleeping worker that has just become a member of their domain.
  parking.notify_all();
}

void Team::set_pin(bool pin) {
  const std::lock_guard lock(placing_);
  seats.set_pin(pin);
  note_seats();
}

void Team::note_seats() {
  BoardFills* const board = profiler_->board();
  if (board != nullptr) board->seat(seats.pins() ? seats.seats() : std::vector<Seat>{});
}

Team::Visit::Visit(Team& to)
    : team(to),
      own_(Worker::here() != nullptr && &Worker::here()->team == &to ? Worker::here() : nullptr),
      wave_(to.parking) {
  // Relaxed: the tasks are published later.
  if (own_ == nullptr) team.visitors_.fetch_add(1, std::memory_order_relaxed);
}

Team::Visit::~Visit() {
  wave_.let_run();
  if (own_ == nullptr) team.visitors_.fetch_sub(1, std::memory_order_release);
}

void Team::Visit::make_ready(Word word) noexcept {
  if (own_ != nullptr) return own_->make_ready(word, wave_);
  team.inject(word, wave_);
}

void Team::inject_as_visitor(Word word, bool is_urgent) noexcept {
  const Visit visit(*this);
  if (is_urgent) {
    inject_urgent(word);
  } else {
    inject(word);
  }
}

void Team::count_ended_as_visitor(Word tag) noexcept {
  // Relaxed: the team, which has to wait for this task, sees it with the end.
  visitors_.fetch_add(1, std::memory_order_relaxed);
  // Release: the tasks that it spawned were counted as begun before.
  ended_outside_.fetch_add(1, std::memory_order_release);
  if (tag != 0) domains.of(tag).count_ended();
  visitors_.fetch_sub(1, std::memory_order_release);
}

void Team::inject(Word word, Parking::Wave& wave) noexcept {
  if (detail::tag_of(word) == 0) {
    const int chiplet = chiplet_here();
    anywhere.push(word, chiplet);
    return parking.notify_near(chiplet, wave);
  }
  domains.push(word);
  if (const int only = place_domains.only_worker(word); only >= 0) {
    return parking.notify_worker(only, wave);
  }
  const Domain& domain = domains.of(word);
  parking.notify_near(chiplet_here(), [&](int rank) { return domain.allows(rank); }, wave);
}

void Team::inject_urgent(Word word) noexcept {
  urgent.push(word);
  Parking::Wave alone(parking);
  parking.notify_near(chiplet_here(), [&](int rank) { return domains.allows(word, rank); }, alone);
}

int Team::chiplet_here() noexcept {
  const int cpu = sched_getcpu();  // no system call
  if (cpu >= 0 && static_cast<std::size_t>(cpu) < chiplet_of_cpu_.size()) {
    if (const int its = chiplet_of_cpu_[static_cast<std::size_t>(cpu)]; its >= 0) return its;
  }
  const unsigned turn = strangers_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(turn % static_cast<unsigned>(seats.places.chiplets()));
}

void Team::check_process() const {
  if (forks_before() != forks_before_) {
    throw RuntimeFault(
        "this Runtime was made before fork(), which does not copy its workers: make one in the "
        "child");
  }
}

}  // namespace atl::runtime
