#include "mover.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

namespace atl::runtime {

namespace {

constexpr std::size_t kSliceBytes = std::size_t{2} << 20;

// A page that is busy (under I/O, or in a CPU's list of pages to be sorted in) is free a moment
// later; the kernel itself tries ten times within one call.
constexpr int kTries = 3;

std::vector<void*> pages_of(std::byte* at, std::size_t bytes, std::size_t step) {
  std::vector<void*> pages;
  pages.reserve(bytes / step);
  for (std::size_t offset = 0; offset < bytes; offset += step) pages.push_back(at + offset);
  return pages;
}

std::string reason(int error, int node) {
  const std::string to = "pages to node " + std::to_string(node) + ": ";
  switch (error) {
    case ENOMEM: return to + "it is full";
    case EACCES: return to + "not allowed by cpuset.mems, or shared with a forked process";
    case EPERM: return to + "move_pages is forbidden; give the container CAP_SYS_NICE";
    case ENODEV: return to + "there is no such node";
    case EBUSY: return to + "pinned or busy; try again later";
    default: return to + in_words(error);
  }
}

}  // namespace

std::size_t Mover::slice_bytes() const { return std::max(kSliceBytes, step_bytes_); }

std::vector<int> Mover::look(std::byte* at, std::size_t bytes) const {
  const std::vector<void*> pages = pages_of(at, bytes, step_bytes_);
  std::vector<int> nodes(pages.size(), -EBUSY);
  const int error = policy_.look(pages, nodes);
  if (error != 0) std::fill(nodes.begin(), nodes.end(), -error);
  return nodes;
}

void Mover::move(std::byte* at, std::size_t bytes, int node, Rehomed& sums) const {
  std::vector<void*> wrong;
  int error = 0;
  const std::vector<int> before = look(at, bytes);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == node) {
      sums.already_bytes += step_bytes_;
    } else if (is_absent(before[i])) {
      sums.absent_bytes += step_bytes_;
    } else {
      wrong.push_back(at + i * step_bytes_);
    }
  }
  for (int tries = 0; tries < kTries && !wrong.empty(); ++tries) {
    std::vector<int> status(wrong.size(), -EBUSY);
    error = policy_.move(wrong, node, status);
    if (error != 0) break;
    // The status alone is not enough: if a page could not be moved, the kernel leaves that of
    // others unset, and the parts of one huge page report each other as busy.
    std::vector<int> after(wrong.size(), -EBUSY);
    error = policy_.look(wrong, after);
    if (error != 0) break;
    std::vector<void*> left;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      if (after[i] == node) {
        sums.moved_bytes += step_bytes_;
      } else {
        left.push_back(wrong[i]);
        error = status[i] < 0 ? -status[i] : EBUSY;
      }
    }
    wrong = std::move(left);
  }
  if (wrong.empty()) return;
  sums.failed_bytes += wrong.size() * step_bytes_;
  if (sums.why.empty()) sums.why = reason(error, node);
}

}  // namespace atl::runtime
