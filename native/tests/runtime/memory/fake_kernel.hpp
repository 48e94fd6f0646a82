// A kernel with nodes 0, 2, 3 and 5 (numbers may have gaps), for tests on a machine with one. It
// keeps a policy and a node per page, as Linux does; `touch` stands for a program's first write.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "memory/page_policy.hpp"

namespace atl::test {

class FakeKernel final : public runtime::PagePolicy {
 public:
  const std::vector<int> nodes{0, 2, 3, 5};
  int place_error = 0;
  int look_error = 0;
  int move_error = 0;
  int pool_error = EINVAL;
  int huge_error = 0;
  int populate_error = 0;
  int here = 0;
  bool single = false;
  std::map<int, std::size_t> room;  // pages that a node can still take from moves; none: any number
  std::set<std::uintptr_t> busy;    // pages that do not move
  std::vector<std::size_t> moves;   // pages of each move call

  int place(std::byte* at, std::size_t bytes, runtime::Placement placement,
            std::span<const int> wanted) override {
    if (place_error != 0) return place_error;
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    if (wanted.empty() || begin % step() != 0 || bytes % step() != 0) return EINVAL;
    for (const int node : wanted) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) return EINVAL;
    }
    for (std::size_t page = begin / step(); page < (begin + bytes) / step(); ++page) {
      policies_[page] = {placement, {wanted.begin(), wanted.end()}};
    }
    return 0;
  }

  int look(std::span<void* const> pages, std::span<int> found) override {
    if (look_error != 0) return look_error;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const auto known = lies_.find(page_of(pages[i]));
      found[i] = known == lies_.end() ? -ENOENT : known->second;
    }
    return 0;
  }

  int move(std::span<void* const> pages, int node, std::span<int> status) override {
    moves.push_back(pages.size());
    if (move_error != 0) return move_error;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const bool full = room.contains(node) && room[node] == 0;
      if (full || busy.contains(page_of(pages[i]))) {
        if (full) status[i] = -ENOMEM;  // of a busy page the kernel may say nothing
        continue;
      }
      if (room.contains(node)) --room[node];
      lies_[page_of(pages[i])] = status[i] = node;
    }
    return 0;
  }

  int map_pool(std::size_t /*bytes*/, std::size_t /*page_bytes*/, std::byte*& /*at*/) override {
    return pool_error;
  }
  int want_huge(std::byte* at, std::size_t bytes) override {
    huge_asked = {reinterpret_cast<std::uintptr_t>(at), bytes};
    return huge_error;
  }
  int populate(std::byte* /*at*/, std::size_t /*bytes*/) override { return populate_error; }
  int node_here() override { return here; }
  bool one_node() override { return single; }

  void touch(const std::byte* at, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    for (std::size_t page = begin / step(); page * step() < begin + bytes; ++page) {
      const auto known = policies_.find(page);
      if (known == policies_.end()) {
        lies_.try_emplace(page, here);
      } else {
        const auto& chosen = known->second.nodes;
        lies_.try_emplace(page, chosen[page % chosen.size()]);
      }
    }
  }

  // The node of a page, from its policy alone.
  struct Policy {
    runtime::Placement placement;
    std::vector<int> nodes;
    bool operator==(const Policy&) const = default;
  };
  Policy policy_at(const std::byte* at) const { return policies_.at(page_of(at)); }
  std::size_t pages_with_policy() const { return policies_.size(); }

  static std::size_t step() { return runtime::page_bytes(); }
  static std::uintptr_t page_of(const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) / step();
  }

  std::pair<std::uintptr_t, std::size_t> huge_asked;

 private:
  std::map<std::uintptr_t, Policy> policies_;
  std::map<std::uintptr_t, int> lies_;
};

}  // namespace atl::test
