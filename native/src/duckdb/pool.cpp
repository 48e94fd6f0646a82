#include "pool.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "profiler/profiler.hpp"
#include "scheduler/affinity.hpp"
#include "scheduler/team.hpp"
#include "seats.hpp"

namespace atl::duckdb {

namespace {

// The working set of a query shorter than this is measured only once, at its end.
constexpr std::chrono::milliseconds kInterval(50);
constexpr std::size_t kSpreadsKept = 4096;

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

// The governor calls this with its lock held.
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
                [](auto, std::uint64_t seed) { return approach_by_name(kDefaultApproach, seed); }),
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
  profiler_ = &inside_->runtime->team().profiler();
  look_for_counters();
  const Bounds limits = bounds(inside_);
  steer(steering_.begin({}, limits.least, limits));
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  if (!usable()) return;
  // Any thread, even a worker, may collect Python's garbage.
  const int self = runtime::this_thread();
  const bool is_worker = std::ranges::any_of(tids_, [&](const auto& tid) { return tid == self; });
  if (std::shared_ptr<Inside> inside = held()) {
    Profile profile = inside->runtime->profile();
    const std::lock_guard lock(holding_);
    if (inside_ != nullptr) {
      last_profile_ = std::move(profile);
      inside_.reset();
      // Deferred: runs in the first thread that waits below.
      ended_ = std::async(is_worker ? std::launch::async : std::launch::deferred,
                          [held = std::move(inside)]() mutable {
                            held->database->finish();
                            held.reset();
                          })
                   .share();
    }
  }
  if (is_worker) return;
  std::shared_future<void> ended;
  {
    const std::lock_guard lock(holding_);
    ended = ended_;
  }
  if (ended.valid()) ended.wait();
}

bool Pool::usable() const { return getpid() == process_; }

std::shared_ptr<Pool::Inside> Pool::held() const {
  const std::lock_guard lock(holding_);
  return inside_;
}

// A worker's thread -------------------------------------------------------------------------------

void Pool::work(const DatabaseHandle& database, int rank) {
  const std::string name = rank == 0 ? "atoll-seat" : "atoll-duck-" + std::to_string(rank);
  pthread_setname_np(pthread_self(), name.c_str());
  if (rank == 0) return;  // the caller has its seat
  std::atomic<int>& tid = tids_[static_cast<std::size_t>(rank)];
  tid = runtime::this_thread();
  tid.notify_one();
  database.execute_tasks();
}

// The governor: once per interval -----------------------------------------------------------------

// Without the governor's lock: DuckDB may take long to answer.
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

// With the governor's lock held. Only a sample of a whole interval has fills.
Decision Pool::decide(const Sample& sample) {
  std::optional<FillCounts> now;
  if (counts_fills_ && sample.fills.memory) now = fills();
  const std::lock_guard lock(mutex_);
  Queries::Open* const query = queries_.alone();
  if (query == nullptr || !sample.fills.memory) return wanted_;
  if (now) Queries::count_fills(*query, *now);
  return wanted_ = steering_.during(query->key, sample);
}

// Simulated ones count only workers that are bound.
void Pool::look_for_counters() {
  counts_fills_ =
      std::ranges::any_of(fills().by_source, [](auto count) { return count.has_value(); });
}

FillCounts Pool::fills() const {
  FillCounts all;
  for (int rank = 1; rank < workers_; ++rank) {
    const FillCounts more = profiler_->fills(rank);
    all = rank == 1 ? more : sum(all, more);
  }
  return all;
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

// Settings ----------------------------------------------------------------------------------------

void Pool::want_quiet(const char* what) const {
  if (calls_ == 0) return;
  throw RuntimeFault(std::string("the ") + what +
                     " may not change while a query of this database runs; wait for the query");
}

void Pool::set_policy(Policy policy) {
  const std::lock_guard one_at_a_time(setting_);
  const std::shared_ptr<Inside> inside = held();
  if (inside == nullptr) throw RuntimeFault("the database is closed");
  {
    const std::lock_guard lock(mutex_);
    want_quiet("policy");
    steering_.set_policy(policy);
  }
  inside->runtime->set_pin(policy != Policy::none);
  look_for_counters();
  const Bounds limits = bounds(inside);
  std::unique_lock lock(mutex_);
  seat_callers();
  Decision decision = steering_.begin({}, chiplets_of(places_, seats_), limits);
  lock.unlock();
  steer(std::move(decision));
}

void Pool::set_spread(int spread) {
  const std::lock_guard one_at_a_time(setting_);
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

// When it returns, the workers have moved.
void Pool::steer(Decision decision) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::move(decision);
  }
  if (const std::shared_ptr<Inside> inside = held()) inside->runtime->look();
}

// Reports -----------------------------------------------------------------------------------------

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
