// Stochastic gradient descent for logistic regression, with model replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
  // `kind`: core, chiplet, node or machine.
  Replicas(Team& team, const Memory& memory, const std::string& kind, std::size_t stride);

  // One epoch: each sample moves the replica of the worker that meets it. Then the replicas become
  // their mean, each weighted by the samples that moved it.
  void epoch(Team& team, const Samples& samples, float step);

  [[nodiscard]] const float* model() const { return models_.front().data(); }
  [[nodiscard]] std::size_t count() const { return models_.size(); }

 private:
  std::vector<std::size_t> of_rank_;
  std::vector<Array<float>> models_;
};

}  // namespace atl::kernels
