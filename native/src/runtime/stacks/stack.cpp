#include "stack.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

namespace {

// The minimum for the control block and a signal frame with AVX-512 state.
constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

// Signals and calls may use this many bytes below the stack pointer (the red zone of x86-64).
constexpr std::size_t kRedZoneBytes = 128;

void refuse_shadow_stack() {
#if defined(__x86_64__)
  constexpr int kShadowStackStatus = 0x5005;  // ARCH_SHSTK_STATUS, Linux 6.6
  unsigned long features = 0;
  if (syscall(SYS_arch_prctl, kShadowStackStatus, &features) == 0 && features != 0) {
    throw RuntimeFault(
        "this process runs under a shadow stack, which tasks cannot switch yet; start it without "
        "(GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)");
  }
#endif
}

// From stack to stack. The guard comes on top of what the user asked for.
std::size_t checked_stride(StackKind kind, std::size_t bytes) {
  if (bytes < kLeastBytes || bytes > kMostBytes) {
    throw RuntimeFault("StackOptions.bytes is " + std::to_string(bytes) +
                       "; it must be between 16 KiB and 1 GiB");
  }
  const std::size_t whole = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  return kind == StackKind::guarded ? whole + guard_bytes() : whole;
}

std::byte* page_of(void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<std::byte*>(at / page_bytes() * page_bytes());
}

}  // namespace

StackPool::StackPool(StackOptions options, std::span<const int> nodes, GuardSupport support)
    : kind_(options.kind),
      stride_(checked_stride(options.kind, options.bytes)),
      guards_(support),
      shelves_(std::max<std::size_t>(1, nodes.size())) {
  refuse_shadow_stack();
  for (std::size_t i = 0; i < nodes.size(); ++i) shelves_[i].node = nodes[i];
}

StackPool::~StackPool() = default;

StackPool::Shelf& StackPool::shelf_of(int node) noexcept {
  for (Shelf& shelf : shelves_) {
    if (shelf.node == node) return shelf;
  }
  return shelves_.front();
}

Fiber* StackPool::pop(Shelf& shelf) noexcept {
  Fiber* const fiber = shelf.idle;
  if (fiber != nullptr) shelf.idle = fiber->next;
  return fiber;
}

Fiber* StackPool::make(Shelf& shelf) {
  if (shelf.chunks.empty() || shelf.chunks.back()->full()) {
    const int preferred = shelves_.size() > 1 ? shelf.node : -1;
    shelf.chunks.push_back(std::make_unique<StackChunk>(kind_, stride_, preferred, guards_));
  }
  Fiber* const fiber = shelf.chunks.back()->make();
  fiber->node = shelf.node;
  ++shelf.made;
  return fiber;
}

Fiber* StackPool::of_another_node(const Shelf& except) noexcept {
  for (Shelf& shelf : shelves_) {
    if (&shelf == &except) continue;
    const std::lock_guard lock(shelf.mutex);
    if (Fiber* const fiber = pop(shelf)) return fiber;
  }
  return nullptr;
}

void StackPool::count_taken() noexcept {
  // Relaxed: these counts publish nothing.
  const std::size_t live = live_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

Fiber* StackPool::take(int node, FiberEntry entry) {
  Shelf& shelf = shelf_of(node);
  Fiber* fiber = nullptr;
  bool fresh = false;
  try {
    const std::lock_guard lock(shelf.mutex);
    fiber = pop(shelf);
    if (fiber == nullptr) {
      fiber = make(shelf);
      fresh = true;
    }
  } catch (const RuntimeFault&) {
    fiber = of_another_node(shelf);
    if (fiber == nullptr) throw;
  }
  if (fresh) reset(*fiber, entry);
  fiber->next = nullptr;
  fiber->trimmed = false;
  count_taken();
  return fiber;
}

void StackPool::give(Fiber* fiber) noexcept {
  check_canary(*fiber);
  live_.fetch_sub(1, std::memory_order_relaxed);
  Shelf& shelf = shelf_of(fiber->node);
  const std::lock_guard lock(shelf.mutex);
  fiber->next = shelf.idle;
  shelf.idle = fiber;
}

std::size_t StackPool::trim(std::size_t keep) {
  std::size_t trimmed = 0;
  for (Shelf& shelf : shelves_) {
    // Holds the lock over system calls: callers trim when there is little to do.
    const std::lock_guard lock(shelf.mutex);
    std::size_t seen = 0;
    for (Fiber* fiber = shelf.idle; fiber != nullptr; fiber = fiber->next) {
      if (++seen <= keep || fiber->trimmed) continue;
      auto* const sp = static_cast<std::byte*>(fiber->context.sp);
      std::byte* const low = page_of(fiber->low + page_bytes() - 1);
      std::byte* const end = page_of(sp - kRedZoneBytes);
      if (low < end) {
        madvise(low, static_cast<std::size_t>(end - low), MADV_DONTNEED);
        ++trimmed;
      }
      fiber->trimmed = true;
    }
  }
  return trimmed;
}

StackCounts StackPool::counts() const {
  StackCounts counts;
  counts.live = live_.load(std::memory_order_relaxed);
  counts.peak = peak_.load(std::memory_order_relaxed);
  for (const Shelf& shelf : shelves_) {
    const std::lock_guard lock(shelf.mutex);
    counts.made += shelf.made;
    for (const auto& chunk : shelf.chunks) counts.mapped_bytes += chunk->bytes();
  }
  return counts;
}

}  // namespace atl::runtime
