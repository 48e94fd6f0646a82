#include "churn.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "available.hpp"
#include "churn_kernels.hpp"
#include "clock.hpp"
#include "descriptor.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {
namespace {

constexpr std::int64_t kMostOperations = 1'000'000'000;
constexpr std::size_t kLeastSlots = 64;
constexpr std::size_t kMostSlots = 1 << 16;  // about 3 MB live per thread, more than L2
constexpr std::size_t kBoxes = 256;
constexpr std::size_t kCheckpoints = 16;
// More than the average item of a slot (60 bytes), to allow for wasteful allocators.
constexpr std::size_t kBytesPerSlot = 512;

// The number after `key` in a small file of /proc; nullopt without such a file or key.
std::optional<std::uint64_t> proc_number(const char* path, std::string_view key) {
  const inspect::Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 4096> buffer{};
  std::size_t filled = 0;
  ssize_t got = 0;
  while (filled < buffer.size() - 1 &&
         (got = read(file.get(), buffer.data() + filled, buffer.size() - 1 - filled)) > 0) {
    filled += static_cast<std::size_t>(got);
  }
  const std::string_view text(buffer.data(), filled);
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return std::strtoull(buffer.data() + at + key.size(), nullptr, 10);
}

// One thread's table, in memory that does not come from malloc.
struct Table {
  std::span<void*> slots;
  std::span<ChurnBox> inbox;
};

struct alignas(kApartBytes) Stretch {
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::int64_t live_bytes = 0;
  bool right = true;
};

class Churners {
 public:
  Churners(const Request& request, Team& team)
      : team_(team),
        limits_(request.limits()),
        operations_(static_cast<std::size_t>(request.integer("operations", 1, kMostOperations))),
        seed_(static_cast<std::uint64_t>(request.integer("seed", 0, INT64_MAX, 1))),
        null_run_(request.null_run()),
        slots_(std::clamp(std::bit_ceil(operations_ / 16 + 1), kLeastSlots, kMostSlots)),
        // Whole pages for each thread, so that each touches its own pages first.
        table_bytes_((slots_ * sizeof(void*) + kBoxes * sizeof(ChurnBox) + page_bytes() - 1) /
                     page_bytes() * page_bytes()),
        memory_(table_bytes_ * team.size(), std::nullopt, false),
        samples_(limits_),
        stretches_(team.size()) {
    const std::uint64_t wanted = team.size() * slots_ * kBytesPerSlot;
    if (wanted > available_bytes(std::nullopt)) {
      throw Fault(Code::kMemory, "churn: " + std::to_string(team.size()) + " threads may need " +
                                     std::to_string(wanted >> 20) +
                                     " MiB, more than is available; use fewer threads");
    }
  }

  void run() {
    try {
      team_.run([this](std::size_t rank) { live(rank); });
    } catch (...) {
      // The run was aborted.
      for (std::size_t rank = 0; rank < team_.size() && !null_run_; ++rank) {
        const Table own = table(rank);
        ChurnThread(own.slots, own.inbox, own.inbox, seed_).drain();
      }
      throw;
    }
  }

  [[nodiscard]] Json answer() const {
    if (!std::all_of(stretches_.begin(), stretches_.end(),
                     [](const Stretch& stretch) { return stretch.right; })) {
      throw Fault(Code::kKernel, "churn: an item had changed; " + allocator_file() +
                                     " hands out the same memory twice");
    }
    return {{"wall_ns_samples", samples_.values()},
            {"requested_bytes", requested_peak_},
            {"resident_bytes", resident_peak_ - std::min(resident_peak_, resident_before_)},
            {"allocator_reached", allocator_file()}};
  }

  [[nodiscard]] const Memory& memory() const { return memory_; }

 private:
  [[nodiscard]] Table table(std::size_t rank) const {
    std::byte* const begin = memory_.data() + rank * table_bytes_;
    auto* const slots = reinterpret_cast<void**>(begin);
    auto* const boxes = reinterpret_cast<ChurnBox*>(begin + slots_ * sizeof(void*));
    return {{slots, slots_}, {boxes, kBoxes}};
  }

  void live(std::size_t rank) {
    const Table own = table(rank);
    std::fill(own.slots.begin(), own.slots.end(), nullptr);
    for (ChurnBox& box : own.inbox) new (&box) ChurnBox(nullptr);
    team_.barrier();
    if (rank == 0) resident_before_ = resident_bytes();
    team_.barrier();
    for (bool timed = false; more_; timed = true) {
      ChurnThread thread(own.slots, own.inbox, table((rank + 1) % team_.size()).inbox,
                         (seed_ + 1) * 0x9e3779b97f4a7c15 + rank);
      if (timed) {
        run_timed(rank, thread);
      } else {
        run_watched(rank, thread);
      }
      team_.barrier();
      null_run_ ? thread.drain_null() : thread.drain();
      stretches_[rank].right &= thread.right();
      team_.barrier();
      if (rank == 0 && timed) take();
      team_.barrier();
    }
  }

  // In steps of milliseconds, so that an aborted run ends soon.
  void work(ChurnThread& thread, std::size_t operations) const {
    constexpr std::size_t kBite = 1 << 16;
    while (operations > 0) {
      const std::size_t now = std::min(operations, kBite);
      null_run_ ? thread.run_null(now) : thread.run(now);
      operations -= now;
      team_.check();
    }
  }

  void run_timed(std::size_t rank, ChurnThread& thread) {
    Stretch& stretch = stretches_[rank];
    team_.barrier();
    stretch.begin_ticks = ticks();
    work(thread, operations_);
    stretch.end_ticks = ticks();
  }

  void run_watched(std::size_t rank, ChurnThread& thread) {
    for (std::size_t point = 0; point < kCheckpoints; ++point) {
      const std::size_t begin = operations_ * point / kCheckpoints;
      const std::size_t end = operations_ * (point + 1) / kCheckpoints;
      work(thread, end - begin);
      stretches_[rank].live_bytes = thread.live_bytes();
      team_.barrier();
      if (rank == 0) look();
      team_.barrier();
    }
  }

  // Called only by rank 0, while the others wait at a barrier.
  void look() {
    std::int64_t live = 0;
    for (const Stretch& stretch : stretches_) live += stretch.live_bytes;
    requested_peak_ = std::max(requested_peak_, live);
    resident_peak_ = std::max(resident_peak_, resident_bytes());
  }

  void take() {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;
    for (const Stretch& stretch : stretches_) {
      first = std::min(first, stretch.begin_ticks);
      last = std::max(last, stretch.end_ticks);
    }
    samples_.add(static_cast<double>(last - first) * tick_ns());
    more_ = !samples_.done();
  }

  Team& team_;
  Limits limits_;
  std::size_t operations_;
  std::uint64_t seed_;
  bool null_run_;
  std::size_t slots_;
  std::size_t table_bytes_;
  Memory memory_;
  Samples samples_;
  std::vector<Stretch> stretches_;
  // Rank 0 writes these between two barriers.
  bool more_ = true;
  std::uint64_t resident_before_ = 0;
  std::uint64_t resident_peak_ = 0;
  std::int64_t requested_peak_ = 0;
};

}  // namespace

std::string allocator_file() {
  // Do not use &malloc, which can be a stub in this executable.
  void* const address = dlsym(RTLD_DEFAULT, "malloc");
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

std::uint64_t resident_bytes() {
  const auto kib = proc_number("/proc/self/smaps_rollup", "\nRss:");
  if (kib) return *kib << 10;
  // A kernel without that file (before 4.14, or gVisor): use the less exact counters.
  return proc_number("/proc/self/status", "VmRSS:").value_or(0) << 10;
}

Json churn(const Request& request) {
  Team team(request.cpus("cpus"), request.limits().budget_ns);
  Churners churners(request, team);
  churners.run();
  Json answer = churners.answer();
  add_threads(answer, team);
  add_pages(answer, churners.memory());
  return answer;
}

}  // namespace atl::probe
