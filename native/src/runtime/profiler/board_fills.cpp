#include "board_fills.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "cachesim/board_of_guest.hpp"
#include "clock.hpp"

namespace atl::runtime {

namespace {

using cachesim::Board;

constexpr std::array<FillEvent, BoardFills::kSources> kEvents = {{
    {FillSource::local_chiplet, 0, 0, 0, "from own L3"},
    {FillSource::remote_chiplet, 0, 0, 0, "from other chiplets"},
    {FillSource::remote_node, 0, 0, 0, "from other nodes"},
    {FillSource::memory_local, 0, 0, 0, "from local memory"},
    {FillSource::memory_remote, 0, 0, 0, "from remote memory"},
}};
constexpr FillTable kTable = {"simulated caches", "lines that an L2 got, in user mode",
                              "docs/simulated.md", kEvents};

// The simulation writes to the column meanwhile. Relaxed: the numbers are wanted, and no order.
std::uint64_t read(const std::uint64_t& column) {
  return std::atomic_ref(const_cast<std::uint64_t&>(column)).load(std::memory_order_relaxed);
}

// What the CPU has got, seen from its place.
BoardFills::Lines lines_of(const Board& board, std::size_t cpu) {
  const std::uint64_t* const row = board.rows[cpu][cachesim::kUser].columns;
  const unsigned own = board.chiplet_of_cpu[cpu];
  const unsigned node = board.node_of_chiplet[own];
  BoardFills::Lines lines{};
  for (unsigned from = 0; from < board.chiplets; ++from) {
    const std::size_t source = from == own ? 0 : board.node_of_chiplet[from] == node ? 1 : 2;
    lines[source] += read(row[cachesim::kFromChiplet + from]);
  }
  for (unsigned home = 0; home < board.nodes; ++home) {
    lines[home == node ? 3 : 4] += read(row[cachesim::kFromMemory + home]);
  }
  return lines;
}

template <class LinesOf>
BoardFills::Lines sum(std::span<const int> cpus, LinesOf&& lines_of_cpu) {
  BoardFills::Lines all{};
  for (const int cpu : cpus) {
    const BoardFills::Lines lines = lines_of_cpu(static_cast<std::size_t>(cpu));
    for (std::size_t at = 0; at < all.size(); ++at) all[at] += lines[at];
  }
  return all;
}

// The board numbers CPUs by position, which is Linux's number unless the guest's are renumbered.
void check_numbers(const Board& board, const Places& places) {
  std::vector<int> found(static_cast<std::size_t>(places.chiplets()), -1);
  for (const Core& core : places.cores) {
    for (const int cpu : core.cpus) {
      const auto at = static_cast<unsigned>(cpu);
      const int its = at < board.cpus ? board.chiplet_of_cpu[at] : -1;
      int& others = found[static_cast<std::size_t>(core.chiplet)];
      if (its < 0 || (others >= 0 && others != its)) {
        throw std::runtime_error("the board has CPU " + std::to_string(cpu) +
                                 " elsewhere than the places; use a topology that does not "
                                 "renumber CPUs, and the machine's own places");
      }
      others = its;
    }
  }
}

}  // namespace

const FillTable& BoardFills::table() { return kTable; }

std::unique_ptr<BoardFills> BoardFills::find(const std::filesystem::path& devices,
                                             const Places& places, int workers) {
  Board* const board = cachesim::find_board(devices);
  if (board == nullptr) return nullptr;
  try {
    check_numbers(*board, places);
    return std::make_unique<BoardFills>(*board, workers);
  } catch (...) {
    munmap(board, Board::kBytes);
    throw;
  }
}

BoardFills::BoardFills(Board& board, int workers)
    : board_(board), workers_(static_cast<std::size_t>(workers)) {
  for (OfWorker& worker : workers_) {
    worker.board = &board;
    worker.moving = &moving_;
  }
  cachesim::count(board, true);
}

BoardFills::~BoardFills() {
  cachesim::count(board_, false);
  munmap(&board_, Board::kBytes);
}

void BoardFills::seat(std::span<const Seat> seats) {
  const std::lock_guard lock(moving_);
  // Each CPU once, for who was there and who comes.
  std::vector<Lines> now;
  for (std::size_t cpu = 0; cpu < board_.cpus; ++cpu) now.push_back(lines_of(board_, cpu));
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    std::vector<int> cpus;
    if (rank < seats.size()) cpus = seats[rank].cpus;
    const auto sharers = std::ranges::count(seats, cpus, &Seat::cpus);
    workers_[rank].seat(now, std::move(cpus), static_cast<std::uint64_t>(sharers));
  }
}

// What the worker has when its CPUs have `now`.
BoardFills::Lines BoardFills::OfWorker::until(const Lines& now) const {
  Lines lines = earlier_;
  for (std::size_t at = 0; at < lines.size(); ++at) lines[at] += (now[at] - base_[at]) / sharers_;
  return lines;
}

void BoardFills::OfWorker::seat(std::span<const Lines> now, std::vector<int> cpus,
                                std::uint64_t sharers) {
  const auto lines_now = [&](std::size_t cpu) { return now[cpu]; };
  if (!cpus_.empty()) earlier_ = until(sum(cpus_, lines_now));
  cpus_ = std::move(cpus);
  sharers_ = sharers;
  base_ = sum(cpus_, lines_now);
}

std::optional<FillReading> BoardFills::OfWorker::read() const {
  const std::lock_guard lock(*moving);
  if (cpus_.empty()) return std::nullopt;
  const Lines lines = until(sum(cpus_, [&](std::size_t cpu) { return lines_of(*board, cpu); }));
  FillReading reading{};
  std::ranges::copy(lines, reading[0].values.begin());
  // All of them count all the time.
  reading[0].enabled_ns = reading[0].running_ns = static_cast<std::uint64_t>(now_ns());
  return reading;
}

}  // namespace atl::runtime
