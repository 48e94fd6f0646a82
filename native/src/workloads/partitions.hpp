// Records apart by the upper bits of their keys' hashes, written by one thread.
//
// Each partition is a list of blocks, so that nothing is copied when it grows and no first pass has
// to count (Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014, section 4.4, keeps overflowing
// groups like this).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hash.hpp"
#include "rows.hpp"

namespace atl::workloads {

using Blocks = std::vector<std::span<const Record>>;

class Partitions {
 public:
  // 2^bits partitions; bits from 1 to 16.
  explicit Partitions(int bits) : bits_(bits), parts_(std::size_t{1} << bits) {}

  [[nodiscard]] std::size_t size() const { return parts_.size(); }

  void add(const Record& record) {
    Part& part = parts_[upper(hash_of(record.key), bits_)];
    if (part.free == part.end) grow(part);
    *part.free++ = record;
  }

  // Calls each(span) for the blocks of a partition, in the order of writing.
  template <class Each>
  void blocks(std::size_t partition, Each&& each) const {
    const Part& part = parts_[partition];
    for (std::size_t at = 0; at < part.blocks.size(); ++at) {
      const Record* const begin = part.blocks[at].get();
      const bool last = at + 1 == part.blocks.size();
      each(std::span<const Record>(begin, last ? part.free : begin + kBlock));
    }
  }

  void release(std::size_t partition) {
    Part& part = parts_[partition];
    part.blocks = decltype(part.blocks)();
    part.free = part.end = nullptr;
  }

  // So that a partition's groups and records fit a core's L2, which has 1 MB or more on servers,
  // and a thread's write positions fit it too.
  static int bits_for(std::size_t records, std::size_t groups) {
    constexpr std::size_t kPartitionBytes = std::size_t{1} << 20;
    constexpr int kMostBits = 10;
    const std::size_t bytes = records * sizeof(Record) + groups * 64;
    return std::clamp(static_cast<int>(std::bit_width(bytes / kPartitionBytes)), 4, kMostBits);
  }

 private:
  static constexpr std::size_t kBlock = 1024;  // records: 16 KiB

  struct Part {
    Record* free = nullptr;
    Record* end = nullptr;
    std::vector<std::unique_ptr<Record[]>> blocks;
  };

  static void grow(Part& part) {
    part.blocks.push_back(std::make_unique_for_overwrite<Record[]>(kBlock));
    part.free = part.blocks.back().get();
    part.end = part.free + kBlock;
  }

  int bits_;
  std::vector<Part> parts_;
};

// A partition of which each thread has written a part.
inline Blocks blocks_of(const std::vector<Partitions*>& written, std::size_t partition) {
  Blocks blocks;
  for (const Partitions* const part : written) {
    part->blocks(partition, [&](std::span<const Record> block) { blocks.push_back(block); });
  }
  return blocks;
}

inline std::size_t records_in(const Blocks& blocks) {
  std::size_t records = 0;
  for (const std::span<const Record> block : blocks) records += block.size();
  return records;
}

}  // namespace atl::workloads
