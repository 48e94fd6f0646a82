// W1 and W2 as fast as we know how: no table is shared. Each thread writes its records apart by the
// hash of their keys (partitions.hpp); then each partition is answered by one thread, in its cache.
//
// Sources: partitioning before aggregation is that of Leis et al., "Morsel-Driven Parallelism"
// (SIGMOD 2014, section 4.4); the small table that counts what comes again soon, and hands on what
// it displaces, is the local table of Cieslewicz and Ross, "Adaptive Aggregation on Chip
// Multiprocessors" (VLDB 2007), with one slot per hash.
//
// O(records) expected. W1: keys with more records than one thread should answer are answered by all
// (heavy_keys.hpp). Memory: 16 bytes a record in W1; in W2 as much only if keys hardly ever come
// again soon.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "groups.hpp"
#include "heavy_keys.hpp"
#include "numbering.hpp"
#include "partitions.hpp"

namespace atl::workloads {

// What a thread needs to answer partitions, kept from one to the next.
struct Answering {
  explicit Answering(std::size_t expected) : numbers(expected) {}
  Numbering numbers;
  std::vector<std::uint32_t> number_of;  // by record of the partition
  std::vector<std::size_t> ends;         // by number
  std::vector<std::int64_t> values;
  std::vector<Record> answers;
};

// Twice the median of each key of a partition.
inline void answer_medians(const Blocks& blocks, Answering& own) {
  own.numbers.clear();
  own.number_of.clear();
  own.ends.clear();
  for (const std::span<const Record> block : blocks) {
    for (const Record& record : block) {
      const std::uint32_t number = own.numbers.of(record.key);
      if (number == own.ends.size()) own.ends.push_back(0);
      ++own.ends[number];
      own.number_of.push_back(number);
    }
  }
  // Counts become begins; writing then moves each to its end.
  std::size_t begin = 0;
  for (std::size_t& end : own.ends) begin += std::exchange(end, begin);
  own.values.resize(own.number_of.size());
  const std::uint32_t* number = own.number_of.data();
  for (const std::span<const Record> block : blocks) {
    for (const Record& record : block) own.values[own.ends[*number++]++] = record.value;
  }
  begin = 0;
  for (std::uint32_t group = 0; group < own.ends.size(); ++group) {
    const std::span<std::int64_t> values(own.values.data() + begin, own.ends[group] - begin);
    own.answers.push_back({own.numbers.keys()[group], twice_median(values)});
    begin = own.ends[group];
  }
}

// The sum of each key's counts of a partition.
inline void answer_counts(const Blocks& blocks, Answering& own) {
  own.numbers.clear();
  own.ends.clear();
  for (const std::span<const Record> block : blocks) {
    for (const Record& record : block) {
      const std::uint32_t number = own.numbers.of(record.key);
      if (number == own.ends.size()) own.ends.push_back(0);
      own.ends[number] += static_cast<std::size_t>(record.value);
    }
  }
  for (std::uint32_t group = 0; group < own.ends.size(); ++group) {
    own.answers.push_back({own.numbers.keys()[group], static_cast<std::int64_t>(own.ends[group])});
  }
}

// Answers all partitions, of which each thread has written a part, and frees them.
template <class Team, class Answer>
Groups answer_partitions(Team& team, const std::vector<Partitions*>& written, std::size_t groups,
                         Answer answer) {
  if (written.empty()) return {};
  const std::size_t partitions = written.front()->size();
  typename Team::template Local<Answering> locals(
      team, [=] { return Answering(2 * groups / partitions); });
  team.pieces(partitions, 1, [&](std::size_t first, std::size_t last) {
    auto own = locals.lease();
    for (std::size_t partition = first; partition < last; ++partition) {
      answer(blocks_of(written, partition), *own);
      for (Partitions* const part : written) part->release(partition);
    }
  });
  Groups parts;
  locals.for_each([&](Answering& own) { parts.push_back(std::move(own.answers)); });
  return parts;
}

template <class Team>
Groups median_fast(Team& team, std::span<const Record> records, std::size_t groups) {
  const int bits = Partitions::bits_for(records.size(), groups);
  typename Team::template Local<Partitions> locals(team, [=] { return Partitions(bits); });
  team.shares(records.size(), [&](std::size_t first, std::size_t last) {
    auto own = locals.lease();
    Partitions& partitions = *own;
    for (const Record& record : records.subspan(first, last - first)) partitions.add(record);
  });
  std::vector<Partitions*> written;
  locals.for_each([&](Partitions& own) { written.push_back(&own); });
  std::vector<Record> heavy = take_heavy_medians(team, written, records.size());
  Groups parts = answer_partitions(team, written, groups, answer_medians);
  parts.push_back(std::move(heavy));
  return parts;
}

// Counts of keys, one slot per hash. A displaced key's count goes to its partition.
class Counting {
 public:
  Counting(int partition_bits, int slot_bits)
      : partitions(partition_bits), bits_(slot_bits), slots_(std::size_t{1} << slot_bits) {}

  // Two slots for each key where these fit a core's share of the L3 cache and the keys come often
  // enough, so that hardly any is displaced. A table that holds a part of the keys is no better
  // than a small one, which stays in the L2.
  static int slot_bits_for(std::size_t records, std::size_t groups) {
    constexpr std::size_t kMost = std::size_t{1} << 18;  // 4 MiB
    constexpr int kSmall = 12;  // 64 KiB: several windows of a moving cluster
    if (2 * groups > std::min(kMost, records / 8)) return kSmall;
    return std::max(static_cast<int>(std::bit_width(2 * groups - 1)), kSmall);
  }

  void add(std::int64_t key) {
    Record& slot = slots_[upper(hash_of(key), bits_)];
    if (slot.key != key) {
      if (slot.value != 0) partitions.add(slot);
      slot = {key, 0};
    }
    ++slot.value;
  }

  void flush() {
    for (Record& slot : slots_) {
      if (slot.value != 0) partitions.add(slot);
      slot.value = 0;
    }
  }

  Partitions partitions;

 private:
  int bits_;
  std::vector<Record> slots_;  // a key and its count; a count of 0: free
};

template <class Team>
Groups count_fast(Team& team, std::span<const Record> records, std::size_t groups) {
  const int bits = Partitions::bits_for(records.size(), groups);
  const int slot_bits = Counting::slot_bits_for(records.size(), groups);
  typename Team::template Local<Counting> locals(team, [=] { return Counting(bits, slot_bits); });
  team.shares(records.size(), [&](std::size_t first, std::size_t last) {
    auto own = locals.lease();
    Counting& counting = *own;
    for (const Record& record : records.subspan(first, last - first)) counting.add(record.key);
  });
  std::vector<Counting*> counted;
  std::vector<Partitions*> written;
  locals.for_each([&](Counting& own) {
    counted.push_back(&own);
    written.push_back(&own.partitions);
  });
  team.pieces(counted.size(), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t at = first; at < last; ++at) counted[at]->flush();
  });
  return answer_partitions(team, written, groups, answer_counts);
}

}  // namespace atl::workloads
