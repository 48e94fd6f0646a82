#include "pool.hpp"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "affinity.hpp"
#include "profiler/profiler.hpp"
#include "team.hpp"

namespace atl::duckdb {

namespace {

// A query of less than this is looked at once, at its end.
constexpr std::chrono::milliseconds kInterval(50);
constexpr std::size_t kSpreadsKept = 4096;

double seconds(clockid_t clock) {
  timespec now{};
  return clock_gettime(clock, &now) == 0
             ? static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec)
             : 0;
}

// Of another thread of this process, as pthread_getcpuclockid makes it of its number.
clockid_t cpu_clock(int tid) {
  constexpr unsigned kSchedOfThread = 6;
  return static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | kSchedOfThread);
}

int chiplet_of(const Places& places, const Seat& seat) {
  return places.cores[static_cast<std::size_t>(seat.core)].chiplet;
}

int chiplets_of(const Places& places, std::span<const Seat> seats) {
  std::set<int> chiplets;
  for (const Seat& seat : seats) chiplets.insert(chiplet_of(places, seat));
  return static_cast<int>(chiplets.size());
}

}  // namespace

const char* name_of(Policy policy) {
  switch (policy) {
    case Policy::adaptive: return "adaptive";
    case Policy::local: return "local";
    case Policy::distributed: return "distributed";
    case Policy::none: return "none";
  }
  return "";
}

// The governor asks it with its lock held.
class Pool::Steered final : public Approach {
 public:
  explicit Steered(Pool& pool) : pool_(pool) {}
  std::string name() const override { return "duckdb"; }

 protected:
  Decision decide(const Sample& sample) override { return pool_.decide(sample); }

 private:
  Pool& pool_;
};

Pool::Pool(std::unique_ptr<DatabaseHandle> database, const PoolOptions& options)
    : places_(options.places),
      workers_(options.workers),
      opened_(std::chrono::steady_clock::now()),
      process_(getpid()),
      tids_(static_cast<std::size_t>(std::max(0, options.workers))),
      steering_(options.policy,
                [](std::uint64_t seed) { return approach_by_name(kDefaultApproach, seed); }),
      wanted_{1, "opened"},
      inside_(std::make_shared<Inside>()) {
  DatabaseHandle& handle = *database;
  RuntimeOptions with;
  with.workers = workers_;
  with.places = places_;
  with.pin = options.policy != Policy::none;
  with.own_approach = std::make_shared<Steered>(*this);
  with.interval = kInterval;
  with.lent = LentWorkers{[this, &handle](int rank) { work(handle, rank); },
                          [this, &handle] { return busy(handle); },
                          [this](std::span<const Seat> seats) { placed(seats); },
                          /*share_chiplets=*/true};
  inside_->database = std::move(database);
  inside_->runtime = std::make_unique<Runtime>(with);
  for (int rank = 1; rank < workers_; ++rank) tids_[static_cast<std::size_t>(rank)].wait(0);
  const runtime::Profiler& profiler = inside_->runtime->team().profiler();
  for (int rank = 1; rank < workers_; ++rank) {
    const FillCounts fills = profiler.fills(rank);
    counts_fills_ = counts_fills_ || std::ranges::any_of(fills.by_source, [](const auto& count) {
                      return count.has_value();
                    });
  }
  const Bounds limits = bounds(inside_);
  steer(steering_.begin({}, limits.least, limits));
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  std::shared_ptr<Inside> inside = held();
  if (inside == nullptr) return;
  Profile profile = inside->runtime->profile();
  {
    const std::lock_guard lock(holding_);
    if (inside_ == nullptr) return;
    last_profile_ = std::move(profile);
    inside_.reset();
  }
  const auto end = [](std::shared_ptr<Inside> held) {
    held->database->finish();
    held.reset();
  };
  const int self = runtime::this_thread();
  const bool is_worker = std::ranges::any_of(tids_, [&](const auto& tid) { return tid == self; });
  // A worker (Python's garbage is collected by whoever is there) cannot wait for itself.
  if (is_worker) {
    std::thread(end, std::move(inside)).detach();
  } else {
    end(std::move(inside));
  }
}

bool Pool::usable() const { return getpid() == process_; }

std::shared_ptr<Pool::Inside> Pool::held() const {
  const std::lock_guard lock(holding_);
  return inside_;
}

// The life of a worker's thread -------------------------------------------------------------------

void Pool::work(const DatabaseHandle& database, int rank) {
  const std::string name = rank == 0 ? "atoll-seat" : "atoll-duck-" + std::to_string(rank);
  pthread_setname_np(pthread_self(), name.c_str());
  if (rank == 0) return;  // its seat is the caller's
  std::atomic<int>& tid = tids_[static_cast<std::size_t>(rank)];
  tid = runtime::this_thread();
  tid.notify_one();
  database.execute_tasks();
}

// The governor: once an interval, with its lock held ----------------------------------------------

bool Pool::busy(DatabaseHandle& database) {
  std::string key;
  Owner owner = 0;
  {
    const std::lock_guard lock(mutex_);
    if (calls_ == 0) return false;
    const auto* const query = queries_.alone();
    if (query == nullptr || !steering_.wants_working_set(query->key)) return true;
    key = query->key;
    owner = query->owner;
  }
  look_at_working_set(database, owner, key);
  return true;
}

void Pool::look_at_working_set(DatabaseHandle& database, Owner owner, const std::string& key) {
  const std::optional<std::uint64_t> bytes = database.working_set_bytes();
  const std::lock_guard lock(mutex_);
  Queries::Open* const query = queries_.find(owner);
  if (!bytes || query == nullptr || query->key != key) return;
  std::optional<std::uint64_t>& most = query->record.working_set_bytes;
  most = std::max(most.value_or(0), *bytes);
}

Decision Pool::decide(const Sample& sample) {
  const std::lock_guard lock(mutex_);
  const auto* const query = queries_.alone();
  if (query != nullptr && sample.fills.memory) wanted_ = steering_.during(query->key, sample);
  return wanted_;
}

void Pool::placed(std::span<const Seat> seats) {
  const std::lock_guard lock(mutex_);
  if (!std::ranges::equal(seats, seats_, {}, &Seat::core, &Seat::core)) queries_.moved();
  seats_.assign(seats.begin(), seats.end());
  seat_callers();
  const int spread = chiplets_of(places_, seats_);
  if (!spreads_.empty() && spread == spreads_.back().spread) return;
  const double now_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
  spreads_.push_back({now_s, spread, wanted_.reason});
  if (spreads_.size() > kSpreadsKept) spreads_.pop_front();
}

void Pool::seat_callers() {
  if (steering_.policy() == Policy::none || seats_.empty()) {
    callers_.seat({}, {});
    return;
  }
  std::set<int> all;
  for (const Seat& seat : seats_) all.insert(seat.cpus.begin(), seat.cpus.end());
  callers_.seat(seats_.front().cpus, {all.begin(), all.end()});
}

// Calls -------------------------------------------------------------------------------------------

Pool::Call::Call(Pool& pool, Kind kind, Owner owner, std::string text)
    : pool_(pool), kind_(kind), owner_(owner) {
  pool_.begin(kind, owner, std::move(text));
  pool_.callers_.enter();
}

Pool::Call::~Call() {
  pool_.end(kind_, owner_, failed_, no_query_);
  pool_.callers_.leave();
}

void Pool::begin(Call::Kind kind, Owner owner, std::string text) {
  const std::shared_ptr<Inside> inside = held();
  if (kind == Call::Kind::query) finish(owner);
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
  }
  if (kind == Call::Kind::other || inside == nullptr) return;
  if (kind == Call::Kind::fetch) {
    const Reading at = read(inside);
    const std::lock_guard lock(mutex_);
    queries_.resume(owner, at);
    return;
  }
  const Bounds limits = bounds(inside);
  bool look = counts_fills_;
  {
    const std::lock_guard lock(mutex_);
    const int now = chiplets_of(places_, seats_);
    Decision decision = steering_.begin(text, now, limits);
    // Beside others, the one that wants to be spread widest has its way.
    if (queries_.running() == 0 || decision.spread > wanted_.spread) wanted_ = std::move(decision);
    look = look || wanted_.spread != now || steering_.wants_working_set(text);
  }
  if (look) inside->runtime->look();
  const Reading at = read(inside);
  const std::lock_guard lock(mutex_);
  Queries::Open& query = queries_.begin(owner, std::move(text), at);
  query.record.policy = name_of(steering_.policy());
  query.record.spread = chiplets_of(places_, seats_);
  query.record.reason = wanted_.reason;
}

void Pool::end(Call::Kind kind, Owner owner, bool failed, bool no_query) {
  const std::shared_ptr<Inside> inside = held();
  std::optional<std::string> to_look_at;
  if (kind != Call::Kind::other && inside != nullptr) {
    const Reading at = read(inside);
    const std::lock_guard lock(mutex_);
    const bool alone = queries_.running() == 1;
    Queries::Open* const query = queries_.pause(owner, at, failed);
    if (no_query) {
      queries_.take(owner);
    } else if (query != nullptr && alone && kind == Call::Kind::query &&
               steering_.wants_working_set(query->key)) {
      to_look_at = query->key;
    }
  }
  // What the query built lives until its result is read.
  if (to_look_at) look_at_working_set(*inside->database, owner, *to_look_at);
  const std::lock_guard lock(mutex_);
  --calls_;
}

Reading Pool::read(const std::shared_ptr<Inside>& inside) const {
  Reading reading;
  reading.now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
  for (const std::atomic<int>& tid : tids_) {
    if (tid != 0) reading.workers_cpu_s += seconds(cpu_clock(tid));
  }
  reading.caller_cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID);
  reading.thread = runtime::this_thread();
  if (counts_fills_) {
    FillCounts sum;
    for (int rank = 1; rank < workers_; ++rank) {
      const FillCounts more = inside->runtime->team().profiler().fills(rank);
      sum = rank == 1 ? more : atl::duckdb::sum(sum, more);
    }
    reading.fills = sum;
  }
  return reading;
}

void Pool::finish(Owner owner) {
  const std::shared_ptr<Inside> inside = held();
  const Bounds limits = inside == nullptr ? Bounds{} : bounds(inside);
  const std::lock_guard lock(mutex_);
  const std::optional<Queries::Open> query = queries_.take(owner);
  if (!query) return;
  const QueryRecord& record = query->record;
  Run run;
  run.wall_s = record.wall_s;
  run.busy_s = record.cpu_s;
  run.working_set_bytes = record.working_set_bytes;
  run.comparable = record.alone && query->one_spread && !record.failed;
  if (query->first.fills && query->last.fills) {
    run.fills = runtime::controller_fills(*query->first.fills, *query->last.fills);
  }
  if (inside != nullptr) steering_.end(query->key, record.spread, run, limits);
  queries_.keep(record);
}

bool Pool::has_query(Owner owner) const {
  const std::lock_guard lock(mutex_);
  return queries_.has(owner);
}

void Pool::forget(Owner owner) { finish(owner); }

Bounds Pool::bounds(const std::shared_ptr<Inside>& inside) const {
  const runtime::SpreadBounds bounds = inside->runtime->team().bounds();
  return {bounds.least, bounds.most, workers_, places_.chiplet_l3_bytes};
}

// What users set ----------------------------------------------------------------------------------

void Pool::want_quiet(const char* what) const {
  if (calls_ == 0) return;
  throw RuntimeFault(std::string("the ") + what +
                     " may not change while a query of this database runs: wait for it");
}

void Pool::set_policy(Policy policy) {
  const std::shared_ptr<Inside> inside = held();
  if (inside == nullptr) throw RuntimeFault("the database is closed");
  {
    const std::lock_guard lock(mutex_);
    want_quiet("policy");
    steering_.set_policy(policy);
  }
  inside->runtime->set_pin(policy != Policy::none);
  const Bounds limits = bounds(inside);
  std::unique_lock lock(mutex_);
  seat_callers();
  Decision decision = steering_.begin({}, chiplets_of(places_, seats_), limits);
  lock.unlock();
  steer(std::move(decision));
}

void Pool::set_spread(int spread) {
  const std::shared_ptr<Inside> inside = held();
  if (inside == nullptr) throw RuntimeFault("the database is closed");
  const Bounds limits = bounds(inside);
  if (spread < limits.least || spread > limits.most) {
    throw RuntimeFault("a spread of " + std::to_string(spread) + ": " + std::to_string(workers_) +
                       " threads can be spread over " + std::to_string(limits.least) + " to " +
                       std::to_string(limits.most) + " chiplets here");
  }
  {
    const std::lock_guard lock(mutex_);
    want_quiet("spread");
    steering_.set_by_hand(spread);
  }
  steer({spread, "set by hand"});
}

// Before it returns the workers sit there.
void Pool::steer(Decision decision) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::move(decision);
  }
  if (const std::shared_ptr<Inside> inside = held()) inside->runtime->look();
}

// What users see ----------------------------------------------------------------------------------

Policy Pool::policy() const {
  const std::lock_guard lock(mutex_);
  return steering_.policy();
}

int Pool::spread() const {
  const std::lock_guard lock(mutex_);
  return chiplets_of(places_, seats_);
}

std::vector<ThreadSeat> Pool::threads() const {
  std::vector<ThreadSeat> seats;
  const std::lock_guard lock(mutex_);
  const bool bound = steering_.policy() != Policy::none;
  for (int rank = 1; rank < workers_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const Seat& own = seats_[at];
    ThreadSeat seat{tids_[at], rank, false, {}, {}};
    if (bound) {
      seat.cpus = own.cpus;
      seat.chiplet = chiplet_of(places_, own);
    }
    if (seat.tid != 0) seats.push_back(std::move(seat));
  }
  const std::vector<Callers::Caller> callers = callers_.now();
  for (const Callers::Caller& caller : callers) {
    ThreadSeat seat{caller.tid, 0, true, caller.cpus, {}};
    if (bound && callers.size() == 1) {
      seat.chiplet = chiplet_of(places_, seats_.front());
    }
    seats.push_back(std::move(seat));
  }
  return seats;
}

std::vector<QueryRecord> Pool::queries() const {
  const std::lock_guard lock(mutex_);
  std::vector<QueryRecord> records(queries_.ended().begin(), queries_.ended().end());
  for (QueryRecord& record : queries_.open()) records.push_back(std::move(record));
  return records;
}

std::uint64_t Pool::queries_left_out() const {
  const std::lock_guard lock(mutex_);
  return queries_.left_out();
}

std::vector<SpreadChange> Pool::spreads() const {
  const std::lock_guard lock(mutex_);
  return {spreads_.begin(), spreads_.end()};
}

Profile Pool::runtime_profile() const {
  if (const std::shared_ptr<Inside> inside = held()) return inside->runtime->profile();
  const std::lock_guard lock(holding_);
  return last_profile_;
}

}  // namespace atl::duckdb
