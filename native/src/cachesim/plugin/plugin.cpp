// SPDX-License-Identifier: GPL-2.0-or-later
// The simulated caches as a TCG plugin of QEMU.
//
//   -plugin libatoll-cachesim-plugin.so,machine=FILE,board=FILE
//
// machine: a description (machine.hpp). board: the file of Board::kBytes zero bytes that is also
// the guest's ivshmem device (board.hpp).
//
// Until the guest wants to count, QEMU translates as without the plugin: nothing is registered. A
// thread looks every few milliseconds whether `wanted` was set, and then registers for
// translations. The next one, on a vCPU's thread, has QEMU drop all translations (a reset, which
// only a vCPU may ask for). From then on each memory access calls the simulation. A program that
// sets `wanted` runs new code until it is counted, since a busy guest may have translated all that
// it runs (board_of_guest.hpp). Counting ends with a reset too, after which translations are seen,
// but nothing of them is asked for.
//
// The file is preloaded too (LD_PRELOAD): then QEMU's clock is the guest's time (guest_time.hpp).
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "../board.hpp"
#include "../caches.hpp"
#include "../clock.hpp"
#include "../guest_time.hpp"
#include "../instructions.hpp"
#include "../spaces.hpp"
#include "qemu_api.hpp"

#define ATOLL_EXPORT extern "C" __attribute__((visibility("default")))

ATOLL_EXPORT int qemu_plugin_version;
int qemu_plugin_version = 4;

namespace {

using namespace atl::cachesim;

// Longer than a vCPU that has to run takes on a busy host; shorter than what a guest notices. While
// QEMU stops all vCPUs for one of them, the others wait here that long.
constexpr std::chrono::milliseconds kPatience{5};
constexpr std::chrono::milliseconds kLookEvery{2};

// Of each vCPU, in QEMU's scoreboard, because translated code adds to it.
struct Spent {
  std::uint64_t instructions[kModes];
  std::uint64_t cycles;  // since the last call of the clock
};

struct Simulation {
  explicit Simulation(const Machine& machine, Board& its_board)
      : board(its_board),
        cpu_count(static_cast<unsigned>(machine.cpus.size())),
        quantum(machine.quantum),
        clock_mhz(machine.clock_mhz),
        caches(machine),
        clock(cpu_count, quantum, kPatience),
        spaces(its_board),
        spent(qemu_plugin_scoreboard_new(sizeof(Spent))) {}

  Spent& of(unsigned cpu) { return *static_cast<Spent*>(qemu_plugin_scoreboard_find(spent, cpu)); }
  qemu_plugin_u64 number(std::size_t offset) const { return {spent, offset}; }

  Board& board;
  const unsigned cpu_count;
  const std::uint64_t quantum;
  const std::uint64_t clock_mhz;
  std::atomic<bool> counting{false};  // the board has a copy
  Caches caches;
  Clock clock;
  Spaces spaces;
  qemu_plugin_scoreboard* spent;
  struct PerCpu {
    std::uint64_t* rows[kModes];
    Spent* spent;
    std::uint64_t root;    // of the page table, as last read
    bool idle;             // executed a HLT last
    std::uint64_t before;  // cycles since the last call of the clock, when it did
  };
  PerCpu cpus[kMostCpus] = {};  // valid while counting
};

Simulation* simulation;  // from qemu_plugin_install on; QEMU does not unload plugins
qemu_plugin_id_t own_id;

void on_reset(qemu_plugin_id_t id);

bool is_counting() { return simulation->counting.load(std::memory_order_relaxed); }
bool is_as_wanted() {
  return (simulation->board.wanted.load(std::memory_order_relaxed) != 0) == is_counting();
}

// Changes over if the guest wants it. For a vCPU's thread; until QEMU has done it, it ignores that
// it is asked again. It waits for all vCPUs, so none may wait for another.
void obey() {
  if (is_as_wanted()) return;
  simulation->clock.let_go();
  qemu_plugin_reset(own_id, on_reset);
}

// ---- the guest's time --------------------------------------------------------------------------

int host_clock(clockid_t which, timespec* now) {
  static const auto real =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  return real(which, now);
}

GuestTime guest_time;

// Also called before a CPU begins or ends to be idle: it ran, or not, all the time since then.
std::int64_t guest_ns() {
  timespec host;
  host_clock(CLOCK_MONOTONIC, &host);
  const std::int64_t host_ns = std::int64_t{host.tv_sec} * 1'000'000'000 + host.tv_nsec;
  const Simulation* const found = std::atomic_ref(simulation).load(std::memory_order_acquire);
  if (found == nullptr) return guest_time.at(host_ns, 0, 1, false);
  const bool running = is_counting() && found->clock.is_running();
  return guest_time.at(host_ns, found->clock.cycles(), found->clock_mhz, running);
}

// ---- while counting ----------------------------------------------------------------------------

void on_access(unsigned cpu, qemu_plugin_meminfo_t info, std::uint64_t vaddr, bool store,
               unsigned mode) {
  const Simulation::PerCpu& mine = simulation->cpus[cpu];
  const auto access = [&](std::uint64_t at) {
    const qemu_plugin_hwaddr* const where = qemu_plugin_get_hwaddr(info, at);
    if (where == nullptr) return;
    const std::uint64_t address = qemu_plugin_hwaddr_phys_addr(where);
    mine.spent->cycles += simulation->caches.access(cpu, address, store, mine.rows[mode]);
  };
  access(vaddr);
  // If it ends in another line, that may be on another page.
  const std::uint64_t last = vaddr + (std::uint64_t{1} << qemu_plugin_mem_size_shift(info)) - 1;
  if ((last ^ vaddr) >> kLineShift != 0) [[unlikely]] {
    access(last);
  }
}

void on_load(unsigned cpu, qemu_plugin_meminfo_t info, std::uint64_t vaddr, void* mode) {
  on_access(cpu, info, vaddr, false, static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(mode)));
}
void on_store(unsigned cpu, qemu_plugin_meminfo_t info, std::uint64_t vaddr, void* mode) {
  on_access(cpu, info, vaddr, true, static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(mode)));
}

// The address of the page table that a vCPU uses; for its thread.
std::uint64_t page_table() {
  constexpr std::uint64_t kAddress = 0x000F'FFFF'FFFF'F000;  // not the PCID
  thread_local qemu_plugin_register* cr3 = nullptr;
  thread_local GByteArray* const bytes = g_byte_array_new();
  if (cr3 == nullptr) {
    const GArray& all = *qemu_plugin_get_registers();
    const auto* const registers = reinterpret_cast<const qemu_plugin_reg_descriptor*>(all.data);
    for (unsigned at = 0; at < all.len; ++at) {
      if (std::string_view(registers[at].name) == "cr3") cr3 = registers[at].handle;
    }
  }
  std::uint64_t value = 0;
  g_byte_array_set_size(bytes, 0);
  if (cr3 != nullptr && qemu_plugin_read_register(cr3, bytes) == sizeof value) {
    std::memcpy(&value, bytes->data, sizeof value);
  }
  return value & kAddress;
}

void publish(unsigned cpu) {
  const Simulation::PerCpu& mine = simulation->cpus[cpu];
  for (unsigned mode = 0; mode < kModes; ++mode) {
    std::atomic_ref(mine.rows[mode][kInstructions])
        .store(mine.spent->instructions[mode], std::memory_order_relaxed);
  }
  simulation->board.cycles[cpu].store(simulation->clock.cycles(cpu), std::memory_order_relaxed);
}

void charge(unsigned cpu) {
  Simulation::PerCpu& mine = simulation->cpus[cpu];
  mine.root = page_table();
  const unsigned space = simulation->spaces.charge(cpu, mine.root, simulation->clock.cycles(cpu));
  simulation->board.space_of_cpu[cpu].store(space, std::memory_order_relaxed);
}

// A CPU that halts is idle until its next block, which `on_quantum` sees since no cycle is left to
// it. QEMU has callbacks for that, but a reset frees them while a vCPU that wakes up may be looking
// for them (QEMU 10.0, plugin_vcpu_cb__simple): a reset only waits for vCPUs that run code.
void on_halt(unsigned cpu, void* /*data*/) {
  Simulation::PerCpu& mine = simulation->cpus[cpu];
  publish(cpu);
  guest_ns();
  simulation->clock.idle(cpu);
  mine.idle = true;
  mine.before = std::exchange(mine.spent->cycles, simulation->quantum);
}
void wake(unsigned cpu) {
  Simulation::PerCpu& mine = simulation->cpus[cpu];
  mine.idle = false;
  mine.spent->cycles += mine.before - simulation->quantum;
  guest_ns();
  simulation->clock.resume(cpu);
}

void on_quantum(unsigned cpu, void* /*data*/) {
  Spent& mine = *simulation->cpus[cpu].spent;
  if (simulation->cpus[cpu].idle) {
    wake(cpu);
    obey();
    if (mine.cycles < simulation->quantum) return;
  }
  const std::uint64_t cycles = mine.cycles;
  mine.cycles = 0;
  Traffic& traffic = simulation->caches.traffic();
  traffic.report(cpu, simulation->cpus[cpu].rows, simulation->clock.cycles(cpu) + cycles);
  if (!simulation->clock.spend(cpu, cycles)) {
    simulation->board.lost_patience.fetch_add(1, std::memory_order_relaxed);
  }
  traffic.settle(simulation->clock.slowest());
  publish(cpu);
  charge(cpu);
  obey();
}

// Before the page table changes: what was counted until now belongs to the old one.
void on_page_table(unsigned cpu, void* /*data*/) {
  publish(cpu);
  charge(cpu);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  obey();
  if (!is_counting()) return;
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  const unsigned mode = qemu_plugin_tb_vaddr(block) >> 63 != 0 ? kKernel : kUser;
  const qemu_plugin_u64 cycles = simulation->number(offsetof(Spent, cycles));
  qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
      block, QEMU_PLUGIN_INLINE_ADD_U64,
      simulation->number(offsetof(Spent, instructions) + mode * sizeof(std::uint64_t)), count);
  qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, QEMU_PLUGIN_INLINE_ADD_U64, cycles,
                                                    count);
  qemu_plugin_register_vcpu_tb_exec_cond_cb(block, on_quantum, QEMU_PLUGIN_CB_R_REGS,
                                            QEMU_PLUGIN_COND_GE, cycles, simulation->quantum,
                                            nullptr);
  void* const data = reinterpret_cast<void*>(std::uintptr_t{mode});
  for (std::size_t at = 0; at < count; ++at) {
    qemu_plugin_insn* const one = qemu_plugin_tb_get_insn(block, at);
    std::uint8_t bytes[16];
    const Code code(bytes, qemu_plugin_insn_data(one, bytes, sizeof bytes));
    if (sets_page_table(code)) {
      qemu_plugin_register_vcpu_insn_exec_cb(one, on_page_table, QEMU_PLUGIN_CB_R_REGS, nullptr);
    }
    if (halts(code)) {
      qemu_plugin_register_vcpu_insn_exec_cb(one, on_halt, QEMU_PLUGIN_CB_NO_REGS, nullptr);
    }
    // QEMU reports a load and a store of an atomic instruction. The store says all: the core needs
    // the line for itself.
    if (!is_atomic(code)) {
      qemu_plugin_register_vcpu_mem_cb(one, on_load, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_R,
                                       data);
    }
    qemu_plugin_register_vcpu_mem_cb(one, on_store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W,
                                     data);
  }
}

// ---- on and off --------------------------------------------------------------------------------

// QEMU calls this with all vCPUs outside of translated code, and with no callback left. Several
// vCPUs may have asked, so this may change nothing.
void on_reset(qemu_plugin_id_t id) {
  Board& board = simulation->board;
  const bool count = board.wanted.load(std::memory_order_relaxed) != 0;
  const bool counted = is_counting();
  for (unsigned cpu = 0; cpu < simulation->cpu_count; ++cpu) {
    Simulation::PerCpu& mine = simulation->cpus[cpu];
    if (count) {
      mine = {.rows = {board.row(cpu, kUser), board.row(cpu, kKernel)},
              .spent = &simulation->of(cpu),
              .root = 0,
              .idle = true,
              .before = 0};
      mine.spent->cycles = simulation->quantum;
    } else if (counted) {
      // Less than a quantum; the page table may have changed since.
      publish(cpu);
      simulation->spaces.charge(cpu, mine.root, simulation->clock.cycles(cpu));
    }
  }
  guest_ns();
  simulation->clock.stop();
  // From now on always: a translation that a page fault ends leaves a pointer in QEMU, which the
  // next one of that vCPU would follow, were it without plugin (QEMU 10.0, plugin_insn).
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  if (count && !counted) simulation->caches.clear();
  simulation->counting.store(count, std::memory_order_relaxed);
  // Release: who sees that counting has ended sees the last counts.
  board.counting.store(count ? 1 : 0, std::memory_order_release);
}

// The thread that waits for the guest's wish. To register twice is to register once.
void watch() {
  while (true) {
    std::this_thread::sleep_for(kLookEvery);
    if (!is_counting() && !is_as_wanted()) {
      qemu_plugin_register_vcpu_tb_trans_cb(own_id, on_translation);
    }
  }
}

// QEMU's signals are for its own threads.
void start_watching() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(watch).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

Board& board_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || lseek(file, 0, SEEK_END) != static_cast<off_t>(Board::kBytes)) {
    throw std::runtime_error(path + ": wants a file of 1 MiB");
  }
  void* const at = mmap(nullptr, Board::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) throw std::runtime_error(path + ": cannot be mapped");
  return *static_cast<Board*>(at);
}

void install(qemu_plugin_id_t id, const qemu_info_t& info, int argc, char** argv) {
  std::string machine_path, board_path;
  for (int at = 0; at < argc; ++at) {
    const std::string given = argv[at];
    if (given.starts_with("machine=")) {
      machine_path = given.substr(8);
    } else if (given.starts_with("board=")) {
      board_path = given.substr(6);
    } else {
      throw std::runtime_error(given + ": no such option; there are machine= and board=");
    }
  }
  if (machine_path.empty() || board_path.empty()) {
    throw std::runtime_error("wants machine=FILE and board=FILE");
  }
  const Machine machine = parse_machine(text_of(machine_path));
  if (!info.system_emulation || info.system.max_vcpus != static_cast<int>(machine.cpus.size())) {
    throw std::runtime_error(machine_path + ": has another number of CPUs than QEMU's machine");
  }
  Board& board = board_of(board_path);
  begin(board, machine);
  own_id = id;
  std::atomic_ref(simulation).store(new Simulation(machine, board), std::memory_order_release);
  start_watching();
}

}  // namespace

// For QEMU, as all of the process: of its clocks, this one drives the guest's.
ATOLL_EXPORT int clock_gettime(clockid_t which, timespec* now) noexcept {
  if (which != CLOCK_MONOTONIC) return host_clock(which, now);
  const std::int64_t guest = guest_ns();
  *now = {guest / 1'000'000'000, guest % 1'000'000'000};
  return 0;
}

ATOLL_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                     char** argv) {
  try {
    install(id, *info, argc, argv);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "atoll-cachesim: %s\n", fault.what());
    return 1;
  }
}
