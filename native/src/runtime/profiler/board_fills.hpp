// The workers' fills where the caches are simulated (docs/simulated.md): in an emulated guest,
// which has no hardware counters.
//
// The simulation counts by CPU, not by thread. So a worker's fills are those of the CPUs that it is
// bound to, in user mode, whatever runs there; workers that are bound to the same CPUs have equal
// parts, and one that is not bound has none. When workers move, each CPU is read once, and what it
// has counted until then stays with those that were there: no line is counted twice or lost. No
// worker reads meanwhile, or its count would go back by what came after the CPU was read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "atoll/runtime/options.hpp"
#include "atoll/runtime/places.hpp"
#include "perf_group.hpp"

namespace atl::cachesim {
struct Board;
}

namespace atl::runtime {

class BoardFills {
 public:
  static constexpr std::size_t kSources = 5;
  using Lines = std::array<std::uint64_t, kSources>;  // as `table` has them

  static const FillTable& table();

  // Null where no caches are simulated. Else they count when this returns, in some 50 ms, and until
  // all that count have ended. `devices`: the folder in which the kernel shows the PCI devices.
  // Throws std::runtime_error of one line if the board cannot be used.
  static std::unique_ptr<BoardFills> find(const std::filesystem::path& devices,
                                          const Places& places, int workers);
  BoardFills(cachesim::Board& board, int workers);
  ~BoardFills();
  BoardFills(const BoardFills&) = delete;
  BoardFills& operator=(const BoardFills&) = delete;

  // Where the workers are bound from now on, by rank; empty: nowhere. One call at a time.
  void seat(std::span<const Seat> seats);

  // Any thread, at any time. Its reading is empty while the worker is not bound.
  [[nodiscard]] const CounterReader& of(int worker) const {
    return workers_[static_cast<std::size_t>(worker)];
  }

 private:
  class OfWorker final : public CounterReader {
   public:
    [[nodiscard]] std::optional<FillReading> read() const override;
    void seat(std::span<const Lines> now, std::vector<int> cpus, std::uint64_t sharers);

    const cachesim::Board* board = nullptr;
    std::mutex* moving = nullptr;  // held by `read`, and by who calls `seat`

   private:
    [[nodiscard]] Lines until(const Lines& now) const;

    std::vector<int> cpus_;
    std::uint64_t sharers_ = 1;
    Lines base_{};     // of the CPUs, when the worker was bound to them
    Lines earlier_{};  // of the worker, until then
  };

  cachesim::Board& board_;
  std::mutex moving_;
  std::vector<OfWorker> workers_;
};

}  // namespace atl::runtime
