// A set of small non-negative numbers: CPUs or NUMA nodes by their OS index.
//
// The words have the layout of the kernel's affinity and node masks, so a set can be passed to
// sched_setaffinity and set_mempolicy directly, whatever the number of CPUs (cpu_set_t ends
// at 1024).
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <vector>

namespace atl::exec {

class CpuSet {
 public:
  using Word = unsigned long;  // the unit of the kernel's masks
  static constexpr std::size_t kWordBits = sizeof(Word) * CHAR_BIT;

  void insert(std::size_t index);
  // Inserts 0 to end-1.
  void insert_below(std::size_t end);

  [[nodiscard]] bool contains(std::size_t index) const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t size() const;
  // One more than the largest member; 0 when empty.
  [[nodiscard]] std::size_t end_index() const;
  [[nodiscard]] bool includes(const CpuSet& other) const;
  [[nodiscard]] bool intersects(const CpuSet& other) const;
  [[nodiscard]] std::vector<std::size_t> members() const;

  CpuSet& operator|=(const CpuSet& other);
  CpuSet& operator&=(const CpuSet& other);
  CpuSet& operator-=(const CpuSet& other);
  CpuSet& operator^=(const CpuSet& other);
  friend bool operator==(const CpuSet& a, const CpuSet& b);

  // The format of the kernel and numactl: "0-3,8"; "none" when empty.
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] static CpuSet from_words(std::vector<Word> words);

 private:
  std::vector<Word> words_;
};

}  // namespace atl::exec
