#include "cpu_set.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace atl::exec {

void CpuSet::insert(std::size_t index) {
  const std::size_t word = index / kWordBits;
  if (word >= words_.size()) {
    words_.resize(word + 1);
  }
  words_[word] |= Word{1} << (index % kWordBits);
}

void CpuSet::insert_below(std::size_t end) {
  for (std::size_t index = 0; index < end; ++index) {
    insert(index);
  }
}

bool CpuSet::contains(std::size_t index) const {
  const std::size_t word = index / kWordBits;
  return word < words_.size() && ((words_[word] >> (index % kWordBits)) & 1U) != 0;
}

bool CpuSet::empty() const {
  return std::all_of(words_.begin(), words_.end(), [](Word word) { return word == 0; });
}

std::size_t CpuSet::size() const {
  std::size_t count = 0;
  for (const Word word : words_) {
    count += static_cast<std::size_t>(std::popcount(word));
  }
  return count;
}

std::size_t CpuSet::end_index() const {
  for (std::size_t word = words_.size(); word > 0; --word) {
    if (words_[word - 1] != 0) {
      return word * kWordBits - static_cast<std::size_t>(std::countl_zero(words_[word - 1]));
    }
  }
  return 0;
}

bool CpuSet::includes(const CpuSet& other) const {
  CpuSet rest = other;
  rest -= *this;
  return rest.empty();
}

bool CpuSet::intersects(const CpuSet& other) const {
  CpuSet common = other;
  common &= *this;
  return !common.empty();
}

std::vector<std::size_t> CpuSet::members() const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < words_.size() * kWordBits; ++index) {
    if (contains(index)) {
      found.push_back(index);
    }
  }
  return found;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t word = 0; word < other.words_.size(); ++word) {
    words_[word] |= other.words_[word];
  }
  return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
  words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t word = 0; word < words_.size(); ++word) {
    words_[word] &= other.words_[word];
  }
  return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
  for (std::size_t word = 0; word < std::min(words_.size(), other.words_.size()); ++word) {
    words_[word] &= ~other.words_[word];
  }
  return *this;
}

CpuSet& CpuSet::operator^=(const CpuSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t word = 0; word < other.words_.size(); ++word) {
    words_[word] ^= other.words_[word];
  }
  return *this;
}

bool operator==(const CpuSet& a, const CpuSet& b) {
  return a.includes(b) && b.includes(a);  // ignores trailing zero words
}

std::string CpuSet::to_string() const {
  const std::vector<std::size_t> all = members();
  std::string text;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last + 1 < all.size() && all[last + 1] == all[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += std::to_string(all[first]);
    if (last > first) {
      text += '-';
      text += std::to_string(all[last]);
    }
    first = last + 1;
  }
  return text.empty() ? "none" : text;
}

CpuSet CpuSet::from_words(std::vector<Word> words) {
  CpuSet set;
  set.words_ = std::move(words);
  return set;
}

}  // namespace atl::exec
