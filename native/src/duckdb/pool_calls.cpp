// The start and end of a call into DuckDB: seats the workers and records the costs.
#include <time.h>

#include <new>
#include <utility>

#include "pool.hpp"
#include "profiler/profiler.hpp"
#include "scheduler/affinity.hpp"
#include "scheduler/team.hpp"
#include "seats.hpp"

namespace atl::duckdb {

namespace {

double seconds(clockid_t clock) {
  timespec now{};
  return clock_gettime(clock, &now) == 0
             ? static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec)
             : 0;
}

}  // namespace

Pool::Call::Call(Pool& pool, Kind kind, Owner owner, std::string text)
    : pool_(pool), kind_(kind), owner_(owner) {
  pool_.enter();
  try {
    pool_.begin(kind, owner, std::move(text));
    pool_.callers_.enter();
  } catch (...) {
    pool_.give_up_call(owner);
    pool_.leave();
    throw;
  }
}

Pool::Call::~Call() {
  try {
    pool_.end(kind_, owner_, failed_, no_query_);
  } catch (const std::bad_alloc&) {
    pool_.give_up_call(owner_);  // what it did is not known
  }
  pool_.leave();
  pool_.callers_.leave();
}

void Pool::enter() {
  const std::lock_guard lock(mutex_);
  ++calls_;
}

void Pool::leave() noexcept {
  const std::lock_guard lock(mutex_);
  --calls_;
}

void Pool::give_up_call(Owner owner) noexcept {
  Reading at;
  at.thread = runtime::this_thread();
  const std::lock_guard lock(mutex_);
  queries_.pause(owner, at, true);
}

void Pool::begin(Call::Kind kind, Owner owner, std::string text) {
  const std::shared_ptr<Inside> inside = held();
  if (kind == Call::Kind::query) finish(owner);
  if (kind == Call::Kind::other || inside == nullptr) return;
  if (kind == Call::Kind::fetch) {
    const Reading at = read();
    const std::lock_guard lock(mutex_);
    queries_.resume(owner, at);
    return;
  }
  const Bounds limits = bounds(inside);
  bool look = counts_fills_;  // soon, for its fills
  {
    const std::lock_guard lock(mutex_);
    const int now = chiplets_of(places_, seats_);
    Decision decision = steering_.begin(text, now, limits);
    // With several queries, the widest wanted spread wins.
    if (queries_.running() == 0 || decision.spread > wanted_.spread) wanted_ = std::move(decision);
    look = look || wanted_.spread != now || steering_.wants_working_set(text);
  }
  if (look) inside->runtime->look();
  const Reading at = read();
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
    const Reading at = read();
    const std::lock_guard lock(mutex_);
    const bool alone = queries_.running() == 1;
    Queries::Open* const query = queries_.pause(owner, at, failed);
    if (no_query) {
      if (const auto query = queries_.take(owner)) steering_.ran_nothing(query->key);
    } else if (query != nullptr && alone && kind == Call::Kind::query &&
               steering_.wants_working_set(query->key)) {
      to_look_at = query->key;
    }
  }
  // The query's data lives until its result is read.
  if (to_look_at) look_at_working_set(*inside->database, owner, *to_look_at);
}

Reading Pool::read() const {
  Reading reading;
  reading.now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
  reading.caller_cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID);
  reading.others_cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - reading.caller_cpu_s;
  reading.thread = runtime::this_thread();
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
  if (query->first_fills) {
    run.fills = runtime::controller_fills(*query->first_fills, *query->last_fills);
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
  const runtime::SpreadBounds bounds = inside->runtime->team().seats.bounds();
  return {bounds.least, bounds.most, workers_, places_.chiplet_l3_bytes};
}

}  // namespace atl::duckdb
