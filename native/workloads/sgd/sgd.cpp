// Stochastic gradient descent for logistic regression, as in DimmWitted (Zhang and Ré, VLDB 2014),
// with which ARCAS 5.4.2 compares.
//
// The model w has a float per feature. A sample x with the label y (1 or -1) moves it against the
// gradient of its loss ln(1 + e^(-y w.x)): w += step * y / (1 + e^(y w.x)) * x. An epoch does so
// for all samples, and then the loss over all is computed. The two are timed apart, as in Fig. 10
// of the paper: `loss_gbs` and `gradient_gbs` are the bytes of the samples over the time of each.
//
// Workers share a copy of the model: all of the machine, or those of a node, or of a chiplet, or
// nobody (`core`). After an epoch the copies are averaged (Zinkevich et al., NIPS 2010). The fewer
// copies, the faster the loss falls with each epoch. How those who share one change it:
//
//   gathered  Each works on a copy of its own, and adds what that has gained to the shared one
//   after
//             some samples; what the others have added comes back. If one of them is just doing
//             so, it goes on and comes again later. No update is lost, and nobody waits. The
//             samples that are not yet added are at most 1/32 of the features, of all workers
//             together, so that they hardly see each other: rows of so few samples are nearly
//             orthogonal.
//   each      Each update goes into the shared copy at once, without locks, and may be lost
//             (Hogwild, Recht et al., NIPS 2011), as in DimmWitted. Every update then takes the
//             model's lines from another core: with two workers that takes eight times as long.
//
// The scheduler splits the samples into pieces. Cost: each phase reads the samples once, in order,
// and nothing else leaves the caches: a row and a model of 8,192 features have 32 KiB each. An
// update needs the whole product w.x, so a row is read twice. To read w less often, one pass over w
// adds two samples and finds the products of the next two; that the second of these must see the
// update by the first is a product of the two rows.
//
// The paper's 10,000 samples of 8,192 features "total approximately 6,250 MB"; with floats they
// have 313 MiB, with doubles 625 MiB. The default is its shape with floats.
#include "sgd/sgd.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>

#include "hash.hpp"
#include "vectors.hpp"

namespace atl::kernels {
namespace {

using workloads::kGolden;
using workloads::mixed;

// In [-1, 1).
float uniform(std::uint64_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits >> 32)) * 0x1p-31F;
}

std::vector<std::size_t> replica_of_rank(Team& team, const std::string& kind) {
  std::vector<int> of_rank(static_cast<std::size_t>(team.workers()), 0);
  if (kind == "core") std::iota(of_rank.begin(), of_rank.end(), 0);
  if (kind == "chiplet") of_rank = team.chiplets();
  if (kind == "node") of_rank = team.nodes().node_of_rank;
  std::vector<int> kinds = of_rank;
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  std::vector<std::size_t> dense;
  for (const int each : of_rank) {
    dense.push_back(static_cast<std::size_t>(std::lower_bound(kinds.begin(), kinds.end(), each) -
                                             kinds.begin()));
  }
  return dense;
}

// How many samples a worker gathers, of `sharers` workers.
std::size_t gathered_samples(std::size_t features, std::size_t sharers) {
  constexpr std::size_t kPart = 32;  // of the features are as many samples of all
  return std::max<std::size_t>(features / (kPart * sharers), 2);
}

// Each sample moves the model.
void learn(float* model, const Samples& samples, std::size_t first, std::size_t last, float step) {
  const VectorLoops& loops = vector_loops();
  const auto factor = [&](std::size_t sample, float score) {
    const float label = samples.labels[sample];
    return step * label / (1 + std::exp(label * score));
  };
  RowPair added{samples.row(first), samples.row(first), 0, 0};
  for (std::size_t sample = first; sample < last; sample += 2) {
    const std::size_t other = std::min(sample + 1, last - 1);
    RowPair next{samples.row(sample), samples.row(other), 0, 0};
    const Products scores = loops.add(model, added, next, samples.stride);
    next.of_left = factor(sample, scores.left);
    if (other != sample) {
      next.of_right = factor(other, scores.right + next.of_left * scores.both);
    }
    added = next;
  }
  loops.add(model, added, added, samples.stride);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Samples make_samples(Team& team, const Memory& memory, std::size_t count, std::size_t features,
                     std::uint64_t seed) {
  const std::size_t stride = padded(features);
  Samples made{count, features, stride, make_array<float>(memory, count * stride),
               make_array<float>(memory, count)};
  const std::uint64_t plane = mixed(seed + 2 * kGolden);
  team.loop(count, 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t sample = first; sample < last; ++sample) {
      const std::uint64_t key = mixed(mixed(seed + kGolden) + sample * kGolden);
      float* const row = made.values.data() + sample * stride;
      float side = 0;
      for (std::size_t at = 0; at < features; ++at) {
        row[at] = uniform(mixed(key + at * kGolden));
        side += row[at] * uniform(mixed(plane + at * kGolden));
      }
      const bool other = key % 20 == 0;
      made.labels[sample] = (side < 0) != other ? -1.0F : 1.0F;
    }
  });
  return made;
}

double loss_of(Team& team, const Samples& samples, const float* model) {
  const VectorLoops& loops = vector_loops();
  std::atomic<double> sum{0};
  team.loop(samples.count, 0, [&](std::size_t first, std::size_t last) {
    double part = 0;
    for (std::size_t sample = first; sample < last; ++sample) {
      const float score = loops.dot(samples.row(sample), model, samples.stride);
      // log1p(e^-margin), which does not overflow for a margin below 0.
      const double margin = static_cast<double>(samples.labels[sample] * score);
      part += std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
    }
    sum.fetch_add(part, std::memory_order_relaxed);  // read after the loop
  });
  return sum / static_cast<double>(samples.count);
}

float step_of(const Samples& samples, int epoch) {
  const float mean_square = static_cast<float>(samples.features) / 3;
  return 1 / mean_square / static_cast<float>(1 + epoch / 2);
}

Replicas::Replicas(Team& team, const Memory& memory, const std::string& kind, bool gathered,
                   std::size_t stride)
    : of_rank_(replica_of_rank(team, kind)) {
  const std::size_t copies = *std::max_element(of_rank_.begin(), of_rank_.end()) + 1;
  std::size_t sharers = 1;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    const auto rank = std::find(of_rank_.begin(), of_rank_.end(), copy) - of_rank_.begin();
    const int node = memory.nodes.node_of_rank[static_cast<std::size_t>(rank)];
    shared_.emplace_back(Array<float>::local(stride, node));
    const auto users = std::count(of_rank_.begin(), of_rank_.end(), copy);
    sharers = std::max(sharers, static_cast<std::size_t>(users));
  }
  if (!gathered || sharers == 1) return;
  gather_ = gathered_samples(stride, sharers);
  for (const int node : memory.nodes.node_of_rank) {
    own_.push_back({Array<float>::local(stride, node), Array<float>::local(stride, node)});
  }
}

void Replicas::epoch(Team& team, const Samples& samples, float step) {
  team.loop(samples.count, 0, [&](std::size_t first, std::size_t last) {
    const auto rank = static_cast<std::size_t>(team.rank());
    Shared& shared = shared_[of_rank_[rank]];
    shared.met.fetch_add(last - first, std::memory_order_relaxed);  // read after the loop
    if (own_.empty()) return learn(shared.model.data(), samples, first, last, step);
    for (; first < last; first += std::min(gather_, last - first)) {
      learn(own_[rank].model.data(), samples, first, std::min(first + gather_, last), step);
      // Acquire, and release: what another rank has added is seen, and what this one adds.
      if (shared.taken.test_and_set(std::memory_order_acquire)) continue;
      add_gain(rank, 0, samples.stride);
      shared.taken.clear(std::memory_order_release);
    }
  });
  team.loop(samples.stride, kLane, [&](std::size_t first, std::size_t last) {
    for (std::size_t rank = 0; rank < own_.size(); ++rank) add_gain(rank, first, last);
    for (std::size_t at = first; at < last; ++at) {
      float mean = 0;
      for (const Shared& shared : shared_) {
        mean +=
            static_cast<float>(shared.met) / static_cast<float>(samples.count) * shared.model[at];
      }
      for (Shared& shared : shared_) shared.model[at] = mean;
      for (Own& own : own_) own.model[at] = own.before[at] = mean;
    }
  });
  for (Shared& shared : shared_) shared.met = 0;
}

void Replicas::add_gain(std::size_t rank, std::size_t first, std::size_t last) {
  float* const shared = shared_[of_rank_[rank]].model.data();
  float* const own = own_[rank].model.data();
  float* const before = own_[rank].before.data();
  for (std::size_t at = first; at < last; ++at) {
    const float now = shared[at] + (own[at] - before[at]);
    shared[at] = own[at] = before[at] = now;
  }
}

namespace {

// What one thread reaches in doubles with as many models, each for an equal share of the samples.
double plain_loss(const Samples& samples, std::size_t copies, int epochs) {
  std::vector<double> mean(samples.features, 0.0);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::vector<double> sum(samples.features, 0.0);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      std::vector<double> model = mean;
      const std::size_t last = samples.count * (copy + 1) / copies;
      for (std::size_t sample = samples.count * copy / copies; sample < last; ++sample) {
        const float* const row = samples.row(sample);
        double score = 0;
        for (std::size_t at = 0; at < samples.features; ++at) score += model[at] * row[at];
        const double label = samples.labels[sample];
        const double factor = step_of(samples, epoch) * label / (1 + std::exp(label * score));
        for (std::size_t at = 0; at < samples.features; ++at) model[at] += factor * row[at];
      }
      for (std::size_t at = 0; at < samples.features; ++at) sum[at] += model[at];
    }
    for (std::size_t at = 0; at < samples.features; ++at) {
      mean[at] = sum[at] / static_cast<double>(copies);
    }
  }
  double loss = 0;
  for (std::size_t sample = 0; sample < samples.count; ++sample) {
    double score = 0;
    for (std::size_t at = 0; at < samples.features; ++at)
      score += mean[at] * samples.row(sample)[at];
    loss += std::log(1 + std::exp(-score * samples.labels[sample]));
  }
  return loss / static_cast<double>(samples.count);
}

// The samples, three models for each worker, and what plain_loss has in doubles.
std::uint64_t sgd_needed(const Settings& settings, int workers) {
  const std::uint64_t row = padded(settings.number("features")) * sizeof(float);
  return settings.number("samples") * (row + sizeof(float)) +
         (3 * static_cast<std::uint64_t>(workers) + 8) * row;
}

Result run_sgd(Team& team, const Settings& settings, Conditions& conditions) {
  const auto begin = std::chrono::steady_clock::now();
  const Samples samples = make_samples(team, conditions.memory, settings.number("samples"),
                                       settings.number("features"), conditions.seed);
  conditions.make_s = seconds_since(begin);
  const int epochs = static_cast<int>(settings.number("epochs"));
  std::optional<Replicas> replicas;
  std::optional<double> plain;
  double loss = 0;
  double loss_s = 0;
  double gradient_s = 0;
  time_runs(
      conditions,
      [&](int) {
        replicas.emplace(team, conditions.memory, settings.text("replicas"),
                         settings.text("updates") == "gathered", samples.stride);
      },
      [&](int) {
        for (int epoch = 0; epoch < epochs; ++epoch) {
          const auto first = std::chrono::steady_clock::now();
          replicas->epoch(team, samples, step_of(samples, epoch));
          gradient_s += seconds_since(first);
          const auto second = std::chrono::steady_clock::now();
          loss = loss_of(team, samples, replicas->model());
          loss_s += seconds_since(second);
        }
      },
      [&](int) {
        if (!plain) plain = plain_loss(samples, replicas->count(), epochs);
        constexpr double kFirst = std::numbers::ln2;  // of a model of zeroes
        constexpr double kShare = 0.75;               // races and unequal shares cost some
        if (loss <= kFirst - kShare * (kFirst - *plain)) return;
        throw WrongAnswer("sgd: the loss fell to " + std::to_string(loss) +
                          "; one thread reaches " + std::to_string(*plain));
      });
  const double bytes = static_cast<double>(samples.count * samples.stride * sizeof(float));
  const double phases = static_cast<double>(epochs);
  const double all_gb = phases * conditions.runs * bytes / 1e9;
  return {.work = phases * static_cast<double>(samples.count),
          .traffic_bytes = 2 * phases * bytes,
          .figures = {{"loss", loss},
                      {"loss_of_one_thread", *plain},
                      {"replicas", static_cast<double>(replicas->count())},
                      {"loss_gbs", all_gb / loss_s},
                      {"gradient_gbs", all_gb / gradient_s}}};
}

}  // namespace

const Workload& sgd() {
  static const Workload workload = {
      "sgd",
      "stochastic gradient descent for logistic regression, with model replicas",
      "samples",
      {{"samples", "10000", "rows", 1, 1 << 30},
       {"features", "8192", "floats of a row", 1, 1 << 24},
       {"epochs", "5", "passes over the samples", 1, 1000},
       {"replicas",
        "chiplet",
        "a copy of the model for each chiplet, core, node, or the machine",
        0,
        0,
        {"chiplet", "core", "node", "machine"}},
       {"updates",
        "gathered",
        "of a copy that workers share: those of some samples at a time, or each at once (Hogwild)",
        0,
        0,
        {"gathered", "each"}}},
      sgd_needed,
      run_sgd,
  };
  return workload;
}

}  // namespace atl::kernels
