// Stochastic gradient descent for logistic regression, with model replicas.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

[[nodiscard]] const Workload& sgd();

// Samples in rows that begin at a multiple of 64 bytes; what a row has past its features is zero.
struct Samples {
  std::size_t count;
  std::size_t features;
  std::size_t stride;   // floats from one row to the next
  Array<float> values;  // count * stride
  Array<float> labels;  // 1 or -1

  [[nodiscard]] const float* row(std::size_t sample) const {
    return values.data() + sample * stride;
  }
};

// Features are uniform in [-1, 1); a label is the side of a random plane, 5 % are the other one.
// The same for any team.
[[nodiscard]] Samples make_samples(Team& team, const Memory& memory, std::size_t count,
                                   std::size_t features, std::uint64_t seed);

// The mean loss over all samples, ln(1 + e^(-label * model.sample)). Reads each sample once.
[[nodiscard]] double loss_of(Team& team, const Samples& samples, const float* model);

// The step of an epoch: `1 / mean square of a row`, halved in the third epoch, and so on.
[[nodiscard]] float step_of(const Samples& samples, int epoch);

// Copies of the model and who uses which.
class Replicas {
 public:
  // `kind`: core, chiplet, node or machine. `gathered`: who share one, add the updates of some
  // samples at a time.
  Replicas(Team& team, const Memory& memory, const std::string& kind, bool gathered,
           std::size_t stride);

  // One epoch: each sample moves the replica of the worker that meets it. Then the replicas become
  // their mean, each weighted by the samples that moved it.
  void epoch(Team& team, const Samples& samples, float step);

  [[nodiscard]] const float* model() const { return shared_.front().model.data(); }
  [[nodiscard]] std::size_t count() const { return shared_.size(); }

 private:
  struct Shared {
    explicit Shared(Array<float> zeroes) : model(std::move(zeroes)) {}
    Array<float> model;
    std::atomic_flag taken;           // somebody adds a gain
    std::atomic<std::size_t> met{0};  // samples of this epoch
  };
  // A rank's, where updates are gathered.
  struct Own {
    Array<float> model;
    Array<float> before;  // as it was when its gain was added last
  };

  // For a part of the model. Then the rank's own is as the shared one.
  void add_gain(std::size_t rank, std::size_t first, std::size_t last);

  std::vector<std::size_t> of_rank_;
  std::deque<Shared> shared_;  // never moved
  std::vector<Own> own_;
  std::size_t gather_ = 0;  // samples
};

}  // namespace atl::kernels
