#include "stack_chunk.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "atoll/runtime/places.hpp"
#include "scheduler/process.hpp"

namespace atl::runtime {

// Never freed, since the handler may be walking the list, but reused.
struct ChunkRecord {
  std::atomic<std::byte*> memory{nullptr};  // null: not in use
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::size_t> stride{0};
  std::atomic<std::size_t> edge_bytes{0};
  ChunkRecord* next = nullptr;
};

namespace {

constexpr std::size_t kCanaryBytes = kCanaryWords * sizeof(std::uint64_t);

// Few mappings even with a million stacks, but small compared with any address space limit.
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

// Tops of stacks are a power of two apart, so without this the hottest lines of all fibers would
// map to the same few sets of the first-level cache. 8 x 128 bytes: the rest of the page still has
// room for the frames of a small task.
constexpr std::size_t kColours = 8;
constexpr std::size_t kColourBytes = 128;

std::atomic<ChunkRecord*> records{nullptr};
constinit std::mutex recording;

ChunkRecord* record(std::byte* memory, std::size_t bytes, std::size_t stride,
                    std::size_t edge_bytes) {
  [[maybe_unused]] static const bool held = (hold_over_fork(recording), true);
  const std::lock_guard lock(recording);
  ChunkRecord* found = records.load(std::memory_order_relaxed);
  while (found != nullptr && found->memory.load(std::memory_order_relaxed) != nullptr) {
    found = found->next;
  }
  const bool fresh = found == nullptr;
  if (fresh) found = new ChunkRecord;
  found->bytes.store(bytes, std::memory_order_relaxed);
  found->stride.store(stride, std::memory_order_relaxed);
  found->edge_bytes.store(edge_bytes, std::memory_order_relaxed);
  // Release: a thread that sees the address sees the rest.
  found->memory.store(memory, std::memory_order_release);
  if (fresh) {
    found->next = records.load(std::memory_order_relaxed);
    records.store(found, std::memory_order_release);
  }
  return found;
}

void prefer_node(void* memory, std::size_t bytes, int node) {
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, 16> mask{};  // 1024 nodes, the kernel's most
  const auto index = static_cast<std::size_t>(node);
  if (index >= mask.size() * kBits) return;
  mask[index / kBits] = 1UL << (index % kBits);
  // A preference: in a container that forbids mbind, stacks are where they are first touched. The
  // kernel reads one bit less than the given number.
  syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask.data(), mask.size() * kBits + 1, 0);
}

}  // namespace

StackChunk::StackChunk(StackKind kind, std::size_t stride, int node, Guards& guards)
    : kind_(kind),
      stride_(stride),
      edge_bytes_(kind == StackKind::guarded ? guard_bytes() : kCanaryBytes),
      // The canary of stack 0 has a page of its own, because stacks begin at whole pages.
      first_(std::max(edge_bytes_, page_bytes())),
      count_(std::max<std::size_t>(1, kChunkBytes / stride)),
      bytes_(first_ + count_ * stride),
      guards_(guards) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    throw RuntimeFault("no address space for " + std::to_string(count_) + " stacks of " +
                       std::to_string(stride >> 10) +
                       " KiB: mmap: " + std::generic_category().message(errno) +
                       "; check ulimit -v, vm.overcommit_memory and vm.max_map_count, or choose "
                       "smaller StackOptions.bytes");
  }
  memory_ = static_cast<std::byte*>(memory);
  // A huge page would be 2 MiB for the first byte of a stack.
  madvise(memory, bytes_, MADV_NOHUGEPAGE);
  if (node >= 0) prefer_node(memory, bytes_, node);
  try {
    record_ = record(memory_, bytes_, stride_, edge_bytes_);
  } catch (const std::bad_alloc&) {
    munmap(memory_, bytes_);
    throw;
  }
}

StackChunk::~StackChunk() {
  for (std::size_t i = 0; i < made_; ++i) {
    // Only the block's address tells where the stack is.
    forget(*reinterpret_cast<Fiber*>(block_of(i)));
  }
  record_->memory.store(nullptr, std::memory_order_release);
#if defined(ATL_RT_ASAN)
  __asan_unpoison_memory_region(memory_, bytes_);
#endif
  munmap(memory_, bytes_);
  if (kind_ == StackKind::guarded) guards_.release(edges_);
}

std::byte* StackChunk::edge_of(std::size_t index) const {
  return memory_ + first_ + index * stride_ - edge_bytes_;
}

std::byte* StackChunk::block_of(std::size_t index) const {
  return edge_of(index + 1) - sizeof(Fiber) - index % kColours * kColourBytes;
}

void StackChunk::make_edge(std::size_t index) {
  if (kind_ == StackKind::guarded) {
    guards_.install(edge_of(index), edge_bytes_);
  } else {
    std::fill_n(reinterpret_cast<std::uint64_t*>(edge_of(index)), kCanaryWords, kCanary);
  }
  ++edges_;
}

Fiber* StackChunk::make() {
  // Edge i + 1 is above stack i; after a fault the call before may have made one already.
  while (edges_ < made_ + 2) make_edge(edges_);
  auto* block = new (block_of(made_)) Fiber;
  block->low = edge_of(made_) + edge_bytes_;
  block->top = reinterpret_cast<std::byte*>(block);
  if (kind_ == StackKind::slab) {
    block->canary = reinterpret_cast<const std::uint64_t*>(edge_of(made_));
  }
  ++made_;
  return block;
}

std::optional<GuardHit> find_guard(const void* address) noexcept {
  const auto* at = static_cast<const std::byte*>(address);
  for (ChunkRecord* chunk = records.load(std::memory_order_acquire); chunk != nullptr;
       chunk = chunk->next) {
    std::byte* const memory = chunk->memory.load(std::memory_order_acquire);
    const std::size_t edge = chunk->edge_bytes.load(std::memory_order_relaxed);
    const std::size_t stride = chunk->stride.load(std::memory_order_relaxed);
    if (memory == nullptr || edge < kCanaryBytes + 1) continue;  // a slab has no guards
    if (at < memory || at >= memory + chunk->bytes.load(std::memory_order_relaxed)) continue;
    const auto offset = static_cast<std::size_t>(at - memory);
    if (offset % stride >= edge) return std::nullopt;
    std::byte* const low = memory + offset / stride * stride;
    return GuardHit{low, low + edge, stride - edge};
  }
  return std::nullopt;
}

}  // namespace atl::runtime
