#include "block.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "base/smaps.hpp"
#include "mover.hpp"
#include "partition.hpp"

namespace atl::runtime {

namespace {

std::string refused(int error, std::span<const int> nodes) {
  const std::string which = nodes_in_words(nodes);
  if (error == EINVAL) {
    return "no memory is available on " + which +
           ": a node is missing, without memory, or not allowed by cpuset.mems; "
           "'grep Mems_allowed_list /proc/self/status' shows the allowed ones, and "
           "Runtime::node_map those of made-up places";
  }
  return "mbind to " + which + ": " + in_words(error);
}

}  // namespace

Block::Block(PagePolicy& policy, std::size_t bytes, Layout layout, Pages pages)
    : policy_(policy),
      reservation_(policy, bytes, pages),
      kind_(layout.kind),
      parts_(partitioned() ? static_cast<int>(layout.nodes.size()) : 1),
      runtime_(layout.runtime) {
  if (layout.nodes.empty() && kind_ != Layout::Kind::kLocal) {
    throw RuntimeFault(partitioned() ? "a partitioned array needs a rank; NodeMap has none"
                                     : "an interleaved array needs a node; NodeMap has none");
  }
  // The kernel would report it, too, but not for an array without pages.
  if (std::ranges::any_of(layout.nodes, [](int node) { return node < 0; })) {
    throw RuntimeFault(refused(EINVAL, layout.nodes));
  }
  if (bytes == 0) return;
  place(layout);
  if (!reservation_.of_pool()) return;
  // Now, because a page that the pool lacks would later be a SIGBUS at some access.
  const int error = policy_.populate(data(), reservation_.whole_bytes());
  if (error == EINVAL) throw RuntimeFault("huge pages of a pool need Linux 5.14 (populating)");
  if (error != 0) {
    throw RuntimeFault(
        "the pool of huge pages has too few on " + nodes_in_words(layout.nodes) + ": " +
        in_words(error) +
        "; see /sys/devices/system/node/node*/hugepages, and set nr_hugepages there");
  }
}

void Block::place(const Layout& layout) {
  switch (kind_) {
    case Layout::Kind::kLocal:
      if (!layout.nodes.empty()) {
        const bool pool = reservation_.of_pool();
        place({0, reservation_.bytes()}, pool ? Placement::kBound : Placement::kPreferred,
              layout.nodes);
      }
      break;
    case Layout::Kind::kInterleaved:
      place({0, reservation_.bytes()}, Placement::kInterleaved, layout.nodes);
      break;
    case Layout::Kind::kPartitioned:
      for (int rank = 0; rank < parts_; ++rank) {
        const std::vector<int> node{layout.nodes[static_cast<std::size_t>(rank)]};
        const bool pool = reservation_.of_pool();
        place(part(rank), pool ? Placement::kBound : Placement::kPreferred, node);
      }
      break;
  }
}

void Block::place(detail::ByteRange range, Placement placement, std::span<const int> nodes) {
  const auto [begin, end] = whole_pages(range);
  if (begin == end) return;
  const int error = policy_.place(data() + begin, end - begin, placement, nodes);
  // Plain memory if policies are not available; why_unplaced() tells the user.
  if (error != 0 && error != EPERM && error != ENOSYS) throw RuntimeFault(refused(error, nodes));
}

detail::ByteRange Block::part(int rank) const {
  if (rank < 0 || rank >= parts_) {
    throw RuntimeFault("part " + std::to_string(rank) + " of an array of " +
                       std::to_string(parts_) + " parts; they count from 0");
  }
  const auto begin = [this](int index) {
    return block_begin(reservation_.bytes(), reservation_.unit_bytes(), parts_, index);
  };
  return {begin(rank), begin(rank + 1)};
}

std::size_t Block::step_bytes() const {
  return reservation_.of_pool() ? reservation_.unit_bytes() : page_bytes();
}

detail::ByteRange Block::whole_pages(detail::ByteRange range) const {
  // A part begins at a unit, or, where it is empty, perhaps at the end; only the last ends within
  // a unit.
  const auto up = [unit = reservation_.unit_bytes()](std::size_t byte) {
    return (byte + unit - 1) / unit * unit;
  };
  return {up(range.begin), up(range.end)};
}

PagesFound Block::found() const {
  PagesFound found;
  const std::size_t step = step_bytes();
  const Mover mover(policy_, step);
  const auto [begin, end] = whole_pages({0, reservation_.bytes()});
  for (std::size_t at = begin; at < end; at += mover.slice_bytes()) {
    const std::size_t bytes = std::min(mover.slice_bytes(), end - at);
    for (const int node : mover.look(data() + at, bytes)) {
      if (node >= 0) {
        found.bytes_by_node[node] += step;
      } else if (is_absent(node)) {
        found.absent_bytes += step;
      } else {
        found.unknown_bytes += step;
      }
    }
  }
  if (reservation_.of_pool()) {
    found.huge_bytes = end - found.absent_bytes;
  } else if (end > 0) {
    std::ifstream smaps("/proc/self/smaps");
    const auto address = reinterpret_cast<std::uintptr_t>(data());
    found.huge_bytes = base::huge_bytes_in(smaps, address, address + end);
  }
  return found;
}

Rehomed Block::rehome(std::span<const int> node_of_rank, const RehomeControl& control) {
  Rehomed sums;
  if (!partitioned()) return sums;
  if (node_of_rank.size() != static_cast<std::size_t>(parts_)) {
    throw RuntimeFault("an array of " + std::to_string(parts_) + " parts cannot be rehomed by " +
                       std::to_string(node_of_rank.size()) + " ranks");
  }
  const std::scoped_lock lock(rehoming_);
  for (int rank = 0; rank < parts_ && !sums.stopped; ++rank) {
    rehome_part(whole_pages(part(rank)), node_of_rank[static_cast<std::size_t>(rank)], control,
                sums);
  }
  return sums;
}

void Block::rehome_part(detail::ByteRange range, int node, const RehomeControl& control,
                        Rehomed& sums) {
  if (range.begin == range.end) return;
  const std::vector<int> nodes{node};
  // First, so that pages that others touch meanwhile get the right node.
  const Placement placement = reservation_.of_pool() ? Placement::kBound : Placement::kPreferred;
  const int error = policy_.place(data() + range.begin, range.end - range.begin, placement, nodes);
  if (error == ENOSYS) {  // a kernel without nodes: no page is elsewhere
    sums.already_bytes += range.end - range.begin;
    return;
  }
  if (error != 0) {
    sums.failed_bytes += range.end - range.begin;
    if (sums.why.empty()) {
      sums.why = error == EPERM ? why_unplaced(policy_) : refused(error, nodes);
    }
    return;
  }
  const Mover mover(policy_, step_bytes());
  for (std::size_t at = range.begin; at < range.end; at += mover.slice_bytes()) {
    if (abandoned_.load(std::memory_order_relaxed)) return;  // relaxed: it publishes nothing
    if (control.stop.stop_requested()) {
      sums.stopped = true;
      return;
    }
    mover.move(data() + at, std::min(mover.slice_bytes(), range.end - at), node, sums);
    if (control.after_slice) control.after_slice(sums);
  }
}

}  // namespace atl::runtime
