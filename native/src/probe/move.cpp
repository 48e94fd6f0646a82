#include "move.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "clock.hpp"
#include "memory.hpp"
#include "move_kernels.hpp"
#include "parts.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {
namespace {

// Makes the two readings of the clock and the spread of the threads' starts (below a microsecond)
// less than half a percent.
constexpr double kMoveSampleNs = 200'000;

MoveOp op_named(const std::string& name) {
  static const std::map<std::string, MoveOp> ops{{"read", MoveOp::read}, {"write", MoveOp::write},
                                                 {"copy", MoveOp::copy}, {"scale", MoveOp::scale},
                                                 {"add", MoveOp::add},   {"triad", MoveOp::triad}};
  return ops.at(name);
}

Isa isa_named(const std::string& name) {
  for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (name == name_of(isa)) return isa;
  }
  return Isa::scalar;
}

struct Plan {
  std::vector<int> cpus;
  MoveOp op;
  Store store;
  Isa isa;
  MoveKernel kernel;
  MoveLayout layout;
  bool null_run;
  std::optional<std::int64_t> start_ns;
  std::optional<std::int64_t> run_ns;
  Limits limits;
};

Plan read_plan(const Request& request) {
  const auto cpus = request.cpus("cpus");
  const MoveOp op =
      op_named(request.word("op", {"read", "write", "copy", "scale", "add", "triad"}));
  const Store store = request.word("store", {"temporal", "streaming"}, false) == "streaming"
                          ? Store::streaming
                          : Store::temporal;
  const std::string wanted =
      request.word("isa", {"widest", "scalar", "sse2", "avx2", "avx512", "neon"}, false);
  const Isa isa = wanted == "widest" ? best_isa() : isa_named(wanted);
  if (!isa_runs_here(isa)) {
    throw Fault(Code::kArgument, "isa: this CPU has no " + wanted + "; its widest is " +
                                     std::string(name_of(best_isa())));
  }
  const bool null_run = request.null_run();
  const MoveKernel kernel = null_run ? move_null_kernel(op, isa) : move_kernel(op, store, isa);
  if (kernel == nullptr) {
    throw Fault(Code::kArgument,
                "store: " + std::string(name_of(isa)) + " has no streaming store on this machine");
  }
  const std::size_t bytes = request.bytes("bytes");
  const std::size_t least = arrays_of(op) * kChunkBytes * cpus.size();
  if (bytes < least) {
    throw Fault(Code::kArgument, "bytes: " + std::to_string(bytes) + " is less than a cache line " +
                                     "of each array for each thread; use at least " +
                                     std::to_string(least));
  }
  return {cpus,
          op,
          store,
          isa,
          kernel,
          move_layout(op, bytes),
          null_run,
          request.integer_or_null("start_ns", 0, INT64_MAX),
          request.integer_or_null("run_ns", 1, kMostNs),
          request.limits()};
}

// Sleeps, then spins, until CLOCK_MONOTONIC reaches `at_ns`.
void wait_until(std::int64_t at_ns, const Team& team) {
  constexpr std::int64_t kSpinNs = 200'000;  // a sleep may end that late
  while (now_ns() < at_ns) {
    team.check();
    const std::int64_t left = at_ns - now_ns() - kSpinNs;
    if (left > 0) {
      const std::int64_t nap = std::min<std::int64_t>(left, 50'000'000);
      const timespec pause{.tv_sec = 0, .tv_nsec = nap};
      nanosleep(&pause, nullptr);
    } else {
      relax();
    }
  }
}

// The readings of one thread, on a separate cache line.
struct alignas(kApartBytes) MoveStretch {
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  bool right = true;
};

class Mover {
 public:
  Mover(const Plan& plan, const Memory& memory, Team& team)
      : plan_(plan), memory_(memory), team_(team), samples_(plan.limits), stretches_(team.size()) {}

  void run() {
    team_.run([this](std::size_t rank) { live(rank); });
  }

  [[nodiscard]] Json answer() const {
    const bool right = std::all_of(stretches_.begin(), stretches_.end(),
                                   [](const MoveStretch& stretch) { return stretch.right; });
    if (!right) {
      throw Fault(Code::kKernel,
                  "move: an element does not have the value that the operation gives; "
                  "the figure is invalid");
    }
    return {{"gbs", samples_.values()}, {"begin_ns", begin_ns_},
            {"end_ns", end_ns_},        {"moved_bytes", moved_bytes_},
            {"verified", true},         {"isa", name_of(plan_.isa)},
            {"passes", passes_}};
  }

 private:
  double* array(std::size_t index) const {
    const std::size_t used = std::min(index, arrays_of(plan_.op) - 1);
    return reinterpret_cast<double*>(memory_.data() + used * plan_.layout.stride_bytes);
  }

  [[nodiscard]] std::size_t sample_bytes() const {
    return plan_.layout.elements * bytes_per_element(plan_.op) * passes_;
  }

  void live(std::size_t rank) {
    const Part part = part_of(plan_.layout.elements, team_.size(), rank, kChunkElements);
    const std::size_t elements = part.end - part.begin;
    const Streams chunk{array(0) + part.begin, array(1) + part.begin, array(2) + part.begin,
                        elements};
    move_fill(plan_.op, array(0) + part.begin, array(1) + part.begin, array(2) + part.begin,
              part.begin, elements);
    const double sum = expected_sum(part.begin, elements);
    MoveStretch& stretch = stretches_[rank];
    team_.barrier();
    calibrate(rank, chunk);
    if (plan_.start_ns) wait_until(*plan_.start_ns, team_);
    team_.barrier();
    if (rank == 0) begin();
    while (more_) {
      team_.barrier();
      stretch.begin_ticks = ticks();
      const double got = plan_.kernel(chunk, passes_);
      stretch.end_ticks = ticks();
      if (plan_.op == MoveOp::read && !plan_.null_run) {
        stretch.right &= got == sum;
      }
      team_.barrier();
      if (rank == 0) take();
      team_.barrier();
    }
    if (!plan_.null_run) {
      stretch.right &= move_verify(plan_.op, chunk.a, part.begin, elements);
    }
  }

  // Only rank 0 decides, between two barriers.
  void calibrate(std::size_t rank, const Streams& chunk) {
    plan_.kernel(chunk, 1);
    team_.barrier();
    const std::size_t passes = repetitions_for(kMoveSampleNs, kMostPasses, [&](std::size_t count) {
      const std::int64_t begin = now_ns();
      plan_.kernel(chunk, count);
      return static_cast<double>(now_ns() - begin);
    });
    if (rank == 0) passes_ = passes;
    team_.barrier();
  }

  void begin() {
    samples_ = Samples(plan_.limits);
    begin_ns_ = now_ns();
    until_ns_ = plan_.start_ns.value_or(begin_ns_) + plan_.run_ns.value_or(0);
  }

  void take() {
    end_ns_ = now_ns();
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;
    for (const MoveStretch& stretch : stretches_) {
      first = std::min(first, stretch.begin_ticks);
      last = std::max(last, stretch.end_ticks);
    }
    moved_bytes_ += sample_bytes();
    const double ns = std::max(1.0, static_cast<double>(last - first) * tick_ns());
    if (samples_.values().size() < plan_.limits.samples)
      samples_.add(static_cast<double>(sample_bytes()) / ns);
    more_ = plan_.run_ns ? end_ns_ < until_ns_ : !samples_.done();
  }

  // A null pass over a few elements takes a nanosecond; more passes would not be more exact.
  static constexpr std::size_t kMostPasses = std::size_t{1} << 24;

  const Plan& plan_;
  const Memory& memory_;
  Team& team_;
  Samples samples_;
  std::vector<MoveStretch> stretches_;
  // Rank 0 writes these between two barriers; all read them after the second.
  std::size_t passes_ = 1;
  bool more_ = true;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::int64_t until_ns_ = 0;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace

Json move(const Request& request) {
  const Plan plan = read_plan(request);
  const Memory memory(plan.layout.total_bytes, request.node(), request.flag("huge", false));
  const std::int64_t start_in =
      plan.start_ns ? std::max<std::int64_t>(0, *plan.start_ns - now_ns()) : 0;
  if (start_in > kMostNs) {
    throw Fault(Code::kArgument, "start_ns: more than 10 minutes ahead of CLOCK_MONOTONIC");
  }
  Team team(plan.cpus, plan.limits.budget_ns + plan.run_ns.value_or(0) + start_in,
            plan.layout.total_bytes);
  Mover mover(plan, memory, team);
  mover.run();
  Json answer = mover.answer();
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
