#include "queries.hpp"

#include <algorithm>

namespace atl::duckdb {

namespace {

constexpr std::size_t kShownBytes = 200;

}  // namespace

std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  // A byte 10xxxxxx continues a character.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

FillCounts sum(const FillCounts& a, const FillCounts& b) {
  FillCounts out;
  for (std::size_t source = 0; source < kFillSources; ++source) {
    const auto& [one, other] = std::pair(a.by_source[source], b.by_source[source]);
    if (one && other) out.by_source[source] = *one + *other;
  }
  out.running_share = std::min(a.running_share, b.running_share);
  return out;
}

FillCounts difference(const FillCounts& before, const FillCounts& now) {
  FillCounts out = now;
  for (std::size_t source = 0; source < kFillSources; ++source) {
    std::optional<std::uint64_t>& count = out.by_source[source];
    const std::optional<std::uint64_t>& old = before.by_source[source];
    if (count && old) {
      count = *count > *old ? *count - *old : 0;
    } else {
      count.reset();
    }
  }
  return out;
}

Queries::Open& Queries::begin(Owner owner, std::string key, const Reading& at) {
  Open* const other = find(owner);
  const bool shared = other != nullptr && other->running;
  if (other != nullptr) {
    other->record.alone = other->record.alone && !shared;
    keep(other->record);
    running_ -= shared ? 1 : 0;
  }
  Open& query = open_[owner];
  query = {};
  query.record.alone = !shared;
  query.owner = owner;
  query.record.sql = cut(key, kShownBytes);
  query.record.started_s = at.now_s;
  query.key = std::move(key);
  query.moves = moves_;
  start(query, at);
  return query;
}

Queries::Open* Queries::resume(Owner owner, const Reading& at) {
  Open* const query = find(owner);
  if (query == nullptr || query->running) return query;
  // Workers continue between the calls, as far as DuckDB buffers results.
  if (query->last.thread == at.thread) {
    query->record.cpu_s += std::max(0.0, at.others_cpu_s - query->last.others_cpu_s);
  }
  start(*query, at);
  return query;
}

void Queries::start(Open& query, const Reading& at) {
  query.running = true;
  query.call = at;
  if (++running_ == 1) return;
  for (auto& [_, other] : open_) {
    if (other.running) other.record.alone = false;
  }
}

Queries::Open* Queries::pause(Owner owner, const Reading& at, bool failed) {
  Open* const query = find(owner);
  if (query == nullptr || !query->running || query->call.thread != at.thread) return nullptr;
  query->running = false;
  --running_;
  query->last = at;
  query->one_spread = query->moves == moves_;
  QueryRecord& record = query->record;
  const double caller_s = std::max(0.0, at.caller_cpu_s - query->call.caller_cpu_s);
  record.wall_s += std::max(0.0, at.now_s - query->call.now_s);
  record.caller_cpu_s += caller_s;
  record.cpu_s += caller_s + std::max(0.0, at.others_cpu_s - query->call.others_cpu_s);
  record.failed = record.failed || failed;
  return query;
}

void Queries::count_fills(Open& query, const FillCounts& now) {
  if (!query.first_fills) query.first_fills = now;
  query.last_fills = now;
  query.record.fills = difference(*query.first_fills, now);
}

std::optional<Queries::Open> Queries::take(Owner owner) {
  const auto found = open_.find(owner);
  if (found == open_.end() || found->second.running) return {};
  Open taken = std::move(found->second);
  open_.erase(found);
  return taken;
}

void Queries::keep(const QueryRecord& record) {
  ended_.push_back(record);
  if (ended_.size() > kept_) {
    ended_.pop_front();
    ++left_out_;
  }
}

Queries::Open* Queries::find(Owner owner) {
  const auto found = open_.find(owner);
  return found == open_.end() ? nullptr : &found->second;
}

Queries::Open* Queries::alone() {
  if (running_ != 1) return nullptr;
  for (auto& [_, query] : open_) {
    if (query.running) return &query;
  }
  return nullptr;
}

std::vector<QueryRecord> Queries::open() const {
  std::vector<QueryRecord> records;
  for (const auto& [_, query] : open_) records.push_back(query.record);
  std::ranges::sort(records, {}, &QueryRecord::started_s);
  return records;
}

}  // namespace atl::duckdb
