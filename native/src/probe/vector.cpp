#include "vector.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "clock.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"
#include "vector_kernels.hpp"

namespace atl::probe {
namespace {

// Makes the two clock readings of a sample less than 0.2 % of it.
constexpr std::int64_t kVectorSampleNs = 50'000;
constexpr std::int64_t kMostIterations = 1'000'000'000;
constexpr std::size_t kFirstIterations = 8;

struct alignas(kApartBytes) Verdict {
  bool right = true;
};

class Writers {
 public:
  Writers(const Request& request, const Memory& memory, Team& team)
      : memory_(memory),
        team_(team),
        limits_(request.limits()),
        writes_(request.word("op", {"write", "read"}) == "write"),
        null_run_(request.null_run()),
        most_(static_cast<std::size_t>(
            request.integer("iterations", 1, kMostIterations, kDefaultIterations))),
        samples_(limits_),
        verdicts_(team.size()) {}

  void run() {
    team_.run([this](std::size_t rank) { live(rank); });
  }

  [[nodiscard]] Json answer() const {
    if (!std::all_of(verdicts_.begin(), verdicts_.end(),
                     [](const Verdict& verdict) { return verdict.right; })) {
      throw Fault(Code::kKernel,
                  "vector: a byte is not the last one written; the figure is invalid");
    }
    return {{"gbs", samples_.values()}, {"verified", true}, {"batch", batch_}};
  }

 private:
  static constexpr std::int64_t kDefaultIterations = 1'000;  // as in the paper

  void live(std::size_t rank) {
    const Part part = vector_part(memory_.bytes(), team_.size(), rank);
    std::byte* const chunk = memory_.data() + part.begin;
    const std::size_t bytes = part.end - part.begin;
    // First touch, and the data for read.
    vector_write(chunk, bytes, vector_value(0));
    team_.barrier();
    // All threads finish the cold iterations before the batch size is chosen.
    std::int64_t fastest_ns = INT64_MAX;
    std::size_t iteration = 0;
    while (iteration < kFirstIterations) {
      const std::int64_t begin_ns = now_ns();
      iteration = iterate(rank, chunk, bytes, iteration, 1);
      fastest_ns = std::min(fastest_ns, now_ns() - begin_ns);
    }
    if (rank == 0) choose_batch(fastest_ns);
    team_.barrier();
    while (more_) {
      const std::size_t batch = batch_;
      team_.barrier();
      const std::uint64_t begin = rank == 0 ? ticks() : 0;
      iteration = iterate(rank, chunk, bytes, iteration, batch);
      if (rank == 0) take(static_cast<double>(ticks() - begin) * tick_ns());
      team_.barrier();
    }
    if (writes_ && !null_run_) {
      verdicts_[rank].right &= vector_verify(chunk, bytes, vector_value(iteration - 1));
    }
  }

  // Every iteration ends with a barrier.
  std::size_t iterate(std::size_t rank, std::byte* chunk, std::size_t bytes, std::size_t iteration,
                      std::size_t count) {
    const std::size_t end = iteration + count;
    if (null_run_) {
      for (; iteration < end; ++iteration) {
        vector_null(bytes);
        team_.barrier();
      }
    } else if (writes_) {
      for (; iteration < end; ++iteration) {
        vector_write(chunk, bytes, vector_value(iteration));
        team_.barrier();
      }
    } else {
      std::uint64_t sum = 0;
      for (std::size_t done = 0; done < count; ++done) {
        sum += vector_read(chunk, bytes);
        team_.barrier();
      }
      iteration = end;
      verdicts_[rank].right &= sum == vector_sum(bytes, vector_value(0)) * count;
    }
    return iteration;
  }

  // Called only by rank 0, before a barrier after which the others read. Takes the fastest time, so
  // that a lost CPU does not make the samples short.
  void choose_batch(std::int64_t fastest_ns) {
    const auto of_time =
        static_cast<std::size_t>(kVectorSampleNs / std::max<std::int64_t>(1, fastest_ns));
    // Enough samples for an interval, whatever `iterations` is.
    batch_ = std::max<std::size_t>(1, std::min(of_time, most_ / 16));
    samples_ = Samples(limits_);
  }

  void take(double ns) {
    iterations_ += batch_;
    samples_.add(static_cast<double>(memory_.bytes() * batch_) / std::max(ns, 1.0));
    const bool spent = iterations_ >= most_ && samples_.values().size() >= kLeastSamples;
    more_ = !spent && !samples_.done();
  }

  const Memory& memory_;
  Team& team_;
  Limits limits_;
  bool writes_;
  bool null_run_;
  std::size_t most_;
  Samples samples_;
  std::vector<Verdict> verdicts_;
  // Rank 0 writes these between two barriers.
  std::size_t batch_ = 1;
  std::size_t iterations_ = 0;
  bool more_ = true;
};

}  // namespace

Json vector(const Request& request) {
  const std::size_t bytes = request.bytes("bytes");
  Team team(request.cpus("cpus"), request.limits().budget_ns, bytes);
  const Memory memory(bytes, request.node(), request.flag("huge", false));
  Writers writers(request, memory, team);
  writers.run();
  Json answer = writers.answer();
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
