#include "chase_walker.hpp"

#include <string>

#include "clock.hpp"
#include "samples.hpp"

namespace atl::probe {
namespace {

// About 1,000 loads from memory. Two readings of the clock take about 50 ns, 0.05 % of it.
constexpr double kSampleNs = 100'000;
constexpr std::uint64_t kSeed = 0x61746f6c6c;

std::size_t lines_in(std::size_t bytes) {
  if (bytes < 2 * kChaseLineBytes) {
    throw Fault(Code::kArgument, "bytes: " + std::to_string(bytes) +
                                     " is too little to chase; use at least two cache lines (128)");
  }
  return bytes / kChaseLineBytes;
}

}  // namespace

Walker::Walker(std::size_t bytes, bool null_run)
    : order_(lines_in(bytes), kSeed), null_run_(null_run) {}

void Walker::prepare(std::byte* data) {
  data_ = data;
  at_ = chase_build(data, order_);
  if (!null_run_) chase_warm(data, order_);
  constexpr std::size_t kMostBlocks = std::size_t{1} << 32;
  blocks_ = repetitions_for(kSampleNs, kMostBlocks, [this](std::size_t blocks) {
    blocks_ = blocks;
    return sample() * static_cast<double>(blocks * kChaseUnroll);
  });
}

double Walker::sample() {
  const std::uint64_t begin = ticks();
  at_ = null_run_ ? chase_null_walk(at_, blocks_) : chase_walk(at_, blocks_);
  const std::uint64_t end = ticks();
  return static_cast<double>(end - begin) * tick_ns() / static_cast<double>(blocks_ * kChaseUnroll);
}

void Walker::verify() const {
  if (!chase_verify(data_, order_, at_)) {
    throw Fault(Code::kKernel, "chase: the walk left its lines; the figure is invalid");
  }
}

}  // namespace atl::probe
