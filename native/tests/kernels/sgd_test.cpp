// SGD and the vectors' loops, against doubles and finite differences.
#include "sgd/sgd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/running.hpp"
#include "vectors.hpp"

namespace atl::kernels {
namespace {

TEST(VectorLoops, AreThoseOfDoubles) {
  with_team("os", 1, [](Team& team, const Memory& memory) {
    const Samples samples = make_samples(team, memory, 2, 1000, 1);
    const float* const left = samples.row(0);
    const float* const right = samples.row(1);
    for (const VectorLoops* const loops : vector_loops_here()) {
      for (std::size_t size = kLane; size <= samples.stride; size += kLane) {
        double dot = 0;
        double distance = 0;
        for (std::size_t at = 0; at < size; ++at) {
          const double apart = double{left[at]} - double{right[at]};
          dot += double{left[at]} * double{right[at]};
          distance += apart * apart;
        }
        EXPECT_NEAR(loops->dot(left, right, size), dot, 1e-4);
        EXPECT_NEAR(loops->distance(left, right, size), distance, 1e-6 * distance);
        float distances[2];
        loops->distances(left, samples.stride / size > 1 ? 1 : 2, left, size, distances);
        EXPECT_EQ(distances[0], 0);
        if (size == samples.stride) {
          EXPECT_EQ(distances[1], loops->distance(right, left, size));
        }
        Array<float> sum = make_array<float>(memory, samples.stride);
        std::copy(left, left + size, sum.begin());
        const Products found =
            loops->add(sum.data(), {left, right, -0.5F, 0.75F}, {right, left, 0, 0}, size);
        Products expected{0, 0, static_cast<float>(dot)};
        for (std::size_t at = 0; at < sum.size(); ++at) {
          const float now = at < size ? 0.5F * left[at] + 0.75F * right[at] : 0;
          EXPECT_NEAR(sum[at], now, 1e-6) << at;
          expected.left += now * right[at];
          expected.right += now * left[at];
        }
        EXPECT_NEAR(found.left, expected.left, 2e-4);
        EXPECT_NEAR(found.right, expected.right, 2e-4);
        EXPECT_NEAR(found.both, expected.both, 1e-4);
      }
    }
  });
}

// One epoch over the samples in order, in doubles.
std::vector<double> plain_epoch(const Samples& samples, double step) {
  std::vector<double> model(samples.stride, 0.0);
  for (std::size_t sample = 0; sample < samples.count; ++sample) {
    const float* const row = samples.row(sample);
    double score = 0;
    for (std::size_t at = 0; at < samples.stride; ++at) score += model[at] * row[at];
    const double label = samples.labels[sample];
    const double factor = step * label / (1 + std::exp(label * score));
    for (std::size_t at = 0; at < samples.stride; ++at) model[at] += factor * row[at];
  }
  return model;
}

TEST(Sgd, OneWorkerMeetsEachSampleAfterTheOther) {
  for (const std::size_t count : {1, 2, 3, 7, 8}) {
    with_team("os", 1, [&](Team& team, const Memory& memory) {
      const Samples samples = make_samples(team, memory, count, 50, 3);
      Replicas replicas(team, memory, "machine", true, samples.stride);
      replicas.epoch(team, samples, 0.2F);
      const std::vector<double> expected = plain_epoch(samples, 0.2F);
      for (std::size_t at = 0; at < samples.stride; ++at) {
        EXPECT_NEAR(replicas.model()[at], expected[at], 1e-5) << count << ' ' << at;
      }
    });
  }
}

// A step that is so small that updates do not see each other: their order does not matter.
TEST(Sgd, GatheredUpdatesAreAllAdded) {
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [](Team& team, const Memory& memory) {
      constexpr float kStep = 1e-6F;
      const Samples samples = make_samples(team, memory, 3000, 64, 4);
      Replicas replicas(team, memory, "machine", true, samples.stride);
      replicas.epoch(team, samples, kStep);
      const std::vector<double> expected = plain_epoch(samples, kStep);
      for (std::size_t at = 0; at < samples.stride; ++at) {
        EXPECT_NEAR(replicas.model()[at], expected[at], 30 * kStep * 0.01) << at;
      }
    });
  }
}

TEST(Sgd, MovesTheModelAgainstTheFiniteDifference) {
  with_team("atoll", 1, [](Team& team, const Memory& memory) {
    constexpr std::size_t kFeatures = 37;
    const Samples one = make_samples(team, memory, 1, kFeatures, 5);
    Replicas replicas(team, memory, "machine", true, one.stride);
    replicas.epoch(team, one, 0.1F);
    const std::vector<float> before(replicas.model(), replicas.model() + one.stride);
    constexpr float kStep = 0.5F;
    replicas.epoch(team, one, kStep);
    for (std::size_t at = 0; at < kFeatures; ++at) {
      constexpr float kApart = 1e-2F;
      std::vector<float> near[2] = {before, before};
      near[0][at] -= kApart;
      near[1][at] += kApart;
      double loss[2];
      for (const int side : {0, 1}) {
        Array<float> model = make_array<float>(memory, one.stride);
        std::copy(near[side].begin(), near[side].end(), model.begin());
        loss[side] = loss_of(team, one, model.data());
      }
      const double gradient = (loss[1] - loss[0]) / (2 * kApart);
      EXPECT_NEAR((replicas.model()[at] - before[at]) / kStep, -gradient, 2e-4) << at;
    }
    for (std::size_t at = kFeatures; at < one.stride; ++at) EXPECT_EQ(replicas.model()[at], 0);
  });
}

TEST(Sgd, LossDoesNotOverflow) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    const Samples samples = make_samples(team, memory, 50, 16, 1);
    Array<float> model = make_array<float>(memory, samples.stride);
    EXPECT_NEAR(loss_of(team, samples, model.data()), std::log(2), 1e-9);
    for (const float size : {1e4F, -1e4F, 1e30F}) {
      std::fill(model.begin(), model.end(), size);
      double expected = 0;
      for (std::size_t sample = 0; sample < 50; ++sample) {
        double score = 0;
        for (std::size_t at = 0; at < 16; ++at) score += double{samples.row(sample)[at]} * size;
        expected += std::max(0.0, -samples.labels[sample] * score) / 50;
      }
      EXPECT_NEAR(loss_of(team, samples, model.data()) / expected, 1, 1e-3);
    }
  });
}

TEST(Sgd, SamplesAreTheSameForAnyTeam) {
  const auto made = [](int workers) {
    std::vector<float> values;
    with_team("os", workers, [&](Team& team, const Memory& memory) {
      const Samples samples = make_samples(team, memory, 33, 17, 9);
      values.assign(samples.values.begin(), samples.values.end());
      values.insert(values.end(), samples.labels.begin(), samples.labels.end());
    });
    return values;
  };
  EXPECT_EQ(made(1), made(3));
}

TEST(Sgd, IsRightOnEveryTeam) {
  const auto check = [](const std::string& scheduler, int workers, const std::string& replicas,
                        const char* updates) {
    const Result result = run_workload(
        sgd(), scheduler, workers,
        {{"samples", "500"}, {"features", "100"}, {"replicas", replicas}, {"updates", updates}}, 2);
    EXPECT_EQ(result.work, 2500);
    const double copies = result.figures.at(2).second;
    EXPECT_LE(copies, replicas == "machine" ? 1 : workers);
    EXPECT_GE(copies, replicas == "core" ? workers : 1);
  };
  for (const auto& [scheduler, workers] : teams()) {
    for (const char* const replicas : {"core", "chiplet", "node", "machine"}) {
      check(scheduler, workers, replicas, "gathered");
    }
    check(scheduler, workers, "machine", "each");
  }
}

TEST(Sgd, SaysWhatItTakesWithSoManyWorkers) {
  const Settings wide({{"samples", "100"}, {"features", "1048576"}});
  constexpr std::uint64_t kRow = 4 << 20;
  EXPECT_GT(sgd().needed(wide, 2), 102 * kRow);
  EXPECT_LT(sgd().needed(wide, 2), 116 * kRow);
  EXPECT_EQ(sgd().needed(wide, 66) - sgd().needed(wide, 2), 3 * 64 * kRow);
}

TEST(Sgd, TakesTheSmallestInputs) {
  for (const char* const samples : {"1", "2", "3"}) {
    for (const char* const features : {"1", "2", "17"}) {
      (void)run_workload(sgd(), "atoll", 2, {{"samples", samples}, {"features", features}});
    }
  }
}

}  // namespace
}  // namespace atl::kernels
