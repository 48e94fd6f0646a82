#include "need.hpp"

#include <algorithm>

#include "aggregate_fast.hpp"
#include "partitions.hpp"
#include "rows.hpp"

namespace atl::workloads {
namespace {

constexpr std::uint64_t kRow = sizeof(Record);

// Bytes of an index for each key at most (indexes/*.hpp has the usual ones), with the allocator's.
std::uint64_t bytes_a_key(IndexKind index) {
  switch (index) {
    case IndexKind::kArt: return 80;
    case IndexKind::kMasstree: return 56;
    case IndexKind::kBTree: return 48;
    case IndexKind::kSkipList: return 48;
  }
  return 0;
}

std::uint64_t at_work(const Options& options) {
  const std::uint64_t records = options.data.records;
  const std::uint64_t groups = options.data.groups;
  const auto threads = static_cast<std::uint64_t>(options.threads);
  const bool fast = options.variant == Variant::kFast;
  // Partly filled blocks: 16 KiB for each partition of a thread (partitions.hpp).
  const std::uint64_t blocks = threads << (14 + Partitions::bits_for(records, groups));
  switch (options.workload) {
    case Workload::kMedian:
      // Vectors that double hold up to twice their values, and both copies while they grow.
      return fast ? records * 2 * kRow + blocks + groups * 64 : records * 3 * 8 + groups * 128;
    case Workload::kCount: {
      const std::uint64_t slots = threads * (kRow << Counting::slot_bits_for(records, groups));
      return fast ? records * kRow + blocks + slots + groups * 64 : groups * 80;
    }
    case Workload::kJoin: {
      const std::uint64_t kept = options.keep ? records * 3 * 24 : 0;
      return kept + (fast ? groups * 4 * kRow : groups * 12);
    }
    case Workload::kIndexJoin: {
      const std::uint64_t kept = options.keep ? records * 3 * 24 : 0;
      return kept + groups * bytes_a_key(options.index);
    }
  }
  return 0;
}

}  // namespace

std::uint64_t input_bytes(const Options& options) {
  return (options.data.records + (joins(options.workload) ? options.data.groups : 0)) * kRow;
}

std::uint64_t held_bytes(const Options& options) {
  const std::uint64_t kept = options.keep ? options.data.records * 24 : 0;
  switch (options.workload) {
    case Workload::kMedian: return options.data.records * 8 + options.data.groups * kRow;
    case Workload::kCount: return options.data.groups * kRow;
    case Workload::kJoin: return kept;
    case Workload::kIndexJoin: return kept + options.data.groups * kRow;
  }
  return 0;
}

std::uint64_t needed_bytes(const Options& options) {
  const std::uint64_t check = options.check ? input_bytes(options) + options.data.groups * 64 : 0;
  return input_bytes(options) + std::max(at_work(options), check);
}

void require_memory(const Options& options, std::uint64_t available) {
  const std::uint64_t needed = needed_bytes(options);
  if (needed <= available) return;
  throw UsageFault(std::string(name_of(options.workload)) + ": needs up to " +
                   std::to_string((needed >> 20) + 1) + " MiB, and " +
                   std::to_string(available >> 20) +
                   " MiB of memory are available; use fewer --records");
}

}  // namespace atl::workloads
