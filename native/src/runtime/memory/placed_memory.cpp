#include "atoll/runtime/placed_memory.hpp"

#include <cerrno>
#include <utility>

#include "block.hpp"
#include "page_policy.hpp"
#include "registry.hpp"

namespace atl {

Rehomed rehome_all(const NodeMap& map, const RehomeControl& control) {
  return runtime::rehome_all(runtime::registry(), map, control);
}

const std::string& why_unplaced() {
  // Never destroyed, like everything that arrays of static lifetime may use.
  static const auto* const why =
      new std::string(runtime::why_unplaced(runtime::kernel_page_policy()));
  return *why;
}

namespace detail {

namespace {

using runtime::Block;
using runtime::Layout;

std::shared_ptr<Block> block_of(std::size_t count, std::size_t size, Layout layout, Pages pages) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    throw RuntimeFault("an array of " + std::to_string(count) + " elements of " +
                       std::to_string(size) + " bytes each is too large");
  }
  return std::make_shared<Block>(runtime::kernel_page_policy(), bytes, std::move(layout), pages);
}

}  // namespace

int node_here() { return runtime::kernel_page_policy().node_here(); }

PlacedMemory::PlacedMemory(std::shared_ptr<Block> block)
    : block_(std::move(block)), data_(block_->data()) {}

PlacedMemory PlacedMemory::local(std::size_t count, std::size_t size, std::optional<int> node,
                                 Pages pages) {
  return PlacedMemory(
      block_of(count, size, {Layout::Kind::kLocal, {node ? *node : node_here()}, 0}, pages));
}

PlacedMemory PlacedMemory::interleaved(std::size_t count, std::size_t size, const NodeMap& map,
                                       Pages pages) {
  return PlacedMemory(
      block_of(count, size, {Layout::Kind::kInterleaved, map.nodes, map.runtime}, pages));
}

PlacedMemory PlacedMemory::partitioned(std::size_t count, std::size_t size, const NodeMap& map,
                                       Pages pages) {
  PlacedMemory memory(
      block_of(count, size, {Layout::Kind::kPartitioned, map.node_of_rank, map.runtime}, pages));
  runtime::registry().add(memory.block_);
  return memory;
}

PlacedMemory::PlacedMemory(PlacedMemory&& other) noexcept
    : block_(std::move(other.block_)), data_(std::exchange(other.data_, nullptr)) {}

PlacedMemory& PlacedMemory::operator=(PlacedMemory&& other) noexcept {
  PlacedMemory old(std::move(*this));
  block_ = std::move(other.block_);
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

PlacedMemory::~PlacedMemory() {
  if (block_) block_->abandon();
}

int PlacedMemory::parts() const { return block_->parts(); }

ByteRange PlacedMemory::part(int rank) const { return block_->part(rank); }

PagesFound PlacedMemory::pages_found() const { return block_->found(); }

Rehomed PlacedMemory::rehome(std::span<const int> node_of_rank, const RehomeControl& control) {
  return block_->rehome(node_of_rank, control);
}

}  // namespace detail

}  // namespace atl
