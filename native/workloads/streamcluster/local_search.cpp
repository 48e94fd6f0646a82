#include "streamcluster/local_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "vectors.hpp"

namespace atl::kernels {
namespace {

constexpr std::size_t kGrain = 256;  // points of a piece: some microseconds
constexpr double kTrials = 3;        // PARSEC's ITER: candidates and trials are 3 k ln k

std::size_t trials_of(std::size_t centers) {
  const auto k = static_cast<double>(centers);
  return std::max<std::size_t>(static_cast<std::size_t>(kTrials * k * std::log(k)), 1);
}

class Search {
 public:
  Search(Team& team, const Memory& memory, const Points& points, const SearchTerms& terms,
         std::uint64_t seed)
      : team_(team),
        points_(points),
        terms_(terms),
        memory_(memory),
        random_(seed),
        costs_(make_array<float>(memory, points.count)),
        trial_costs_(make_array<float>(memory, points.count)),
        of_(make_array<std::uint32_t>(memory, points.count)),
        sums_(static_cast<std::size_t>(team.workers())) {}

  Clustering run() {
    if (points_.count <= terms_.most_centers) return each_its_own();
    double low = 0;
    double high = open_first();
    double z = high / 2;
    open_by_chance(z);
    // A cost of 0: there are no more points that differ.
    while (centers_.size() < terms_.least_centers && cost() > 0) {
      high = z;
      z = (high + low) / 2;
      open_by_chance(z);
    }
    choose_candidates();
    const std::size_t least = terms_.least_centers;
    const std::size_t most = terms_.most_centers;
    for (;;) {
      improve(z, 0.1);
      const auto k = static_cast<double>(centers_.size());
      const bool near =
          (k <= 1.1 * static_cast<double>(most) && k >= 0.9 * static_cast<double>(least)) ||
          (centers_.size() <= most + 2 && centers_.size() + 2 >= least);
      if (near) improve(z, 0.001);
      const bool few = centers_.size() < least;
      const bool many = centers_.size() > most;
      if (!few && !many) break;
      (few ? high : low) = z;
      z = (high + low) / 2;
      if (low >= 0.999 * high) break;
    }
    return result();
  }

 private:
  // What one rank has summed up in a pass.
  struct alignas(128) Sums {
    double saved = 0;
    std::vector<double> kept;  // for each center, what its points would lose by moving, negative
  };

  Clustering each_its_own() {
    Clustering all;
    all.centers.resize(points_.count);
    std::iota(all.centers.begin(), all.centers.end(), 0U);
    all.of = all.centers;
    return all;
  }

  Clustering result() {
    return {centers_, std::vector<std::uint32_t>(of_.begin(), of_.end()), cost(), traffic_bytes_};
  }

  template <class Piece>  // piece(first, last, sums of the rank)
  void pass(double bytes_of_point, Piece&& piece) {
    for (Sums& sums : sums_) {
      sums.saved = 0;
      sums.kept.assign(centers_.size() + 16, 0);  // others' are not on the same line
    }
    team_.loop(points_.count, kGrain, [&](std::size_t first, std::size_t last) {
      piece(first, last, sums_[static_cast<std::size_t>(team_.rank())]);
    });
    traffic_bytes_ += bytes_of_point * static_cast<double>(points_.count);
  }
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(points_.stride * sizeof(float));
  }
  [[nodiscard]] double saved() const {
    double sum = 0;
    for (const Sums& sums : sums_) sum += sums.saved;
    return sum;
  }
  double cost() {
    pass(4, [&](std::size_t first, std::size_t last, Sums& sums) {
      for (std::size_t at = first; at < last; ++at) sums.saved += costs_[at];
    });
    return saved();
  }

  [[nodiscard]] float cost_at(std::size_t point, const float* center) const {
    return loops_.distance(points_.row(point), center, points_.stride) * points_.weights[point];
  }

  // All points to the first one. Returns the cost.
  double open_first() {
    centers_ = {0};
    const float* const center = points_.row(0);
    pass(row_bytes() + 12, [&](std::size_t first, std::size_t last, Sums& sums) {
      for (std::size_t at = first; at < last; ++at) {
        costs_[at] = cost_at(at, center);
        of_[at] = 0;
        sums.saved += costs_[at];
      }
    });
    return saved();
  }

  // The first solution. Points come in random order.
  void open_by_chance(double z) {
    if (order_.empty()) {
      order_.resize(points_.count);
      std::iota(order_.begin(), order_.end(), 0U);
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    open_first();
    std::uniform_real_distribution<double> chance(0, z);
    for (const std::uint32_t candidate : order_) {
      if (chance(random_) >= static_cast<double>(costs_[candidate])) continue;
      const auto own = static_cast<std::uint32_t>(centers_.size());
      centers_.push_back(candidate);
      const float* const center = points_.row(candidate);
      pass(row_bytes() + 8, [&](std::size_t first, std::size_t last, Sums&) {
        for (std::size_t at = first; at < last; ++at) {
          const float cost = cost_at(at, center);
          if (cost >= costs_[at]) continue;
          costs_[at] = cost;
          of_[at] = own;
        }
      });
    }
  }

  // By weight, with repetition.
  void choose_candidates() {
    candidates_.resize(candidates_of(points_.count, terms_.least_centers));
    std::iota(candidates_.begin(), candidates_.end(), 0U);
    if (candidates_.size() < points_.count) {
      std::discrete_distribution<std::uint32_t> by_weight(points_.weights,
                                                          points_.weights + points_.count);
      for (std::uint32_t& candidate : candidates_) candidate = by_weight(random_);
    }
    if (!terms_.keep_distances) return;
    kept_costs_.emplace(make_array<float>(memory_, candidates_.size() * points_.count));
    pass(row_bytes() + 4 * static_cast<double>(candidates_.size()), [&](std::size_t first,
                                                                        std::size_t last, Sums&) {
      for (std::size_t at = first; at < last; ++at) {
        for (std::size_t each = 0; each < candidates_.size(); ++each) {
          (*kept_costs_)[each * points_.count + at] = cost_at(at, points_.row(candidates_[each]));
        }
      }
    });
  }

  // Tries candidates in random order until a round saves no more than `share` of the cost.
  void improve(double z, double share) {
    const std::size_t trials = trials_of(terms_.most_centers);
    std::vector<std::size_t> turns(candidates_.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    double all = cost() + z * static_cast<double>(centers_.size());
    for (double saved = all; saved > share * all;) {
      saved = 0;
      std::shuffle(turns.begin(), turns.end(), random_);
      for (std::size_t trial = 0; trial < trials; ++trial) {
        saved += try_to_open(turns[trial % turns.size()], z);
      }
      all -= saved;
    }
  }

  // Opens the candidate if this saves something; returns how much.
  double try_to_open(std::size_t which, double z) {
    const std::uint32_t candidate = candidates_[which];
    if (kept_costs_) {
      const float* const kept = kept_costs_->data() + which * points_.count;
      pass(12, [&](std::size_t first, std::size_t last, Sums& sums) {
        for (std::size_t at = first; at < last; ++at) weigh(at, kept[at], sums);
      });
      return open_if_better(candidate, kept, z);
    }
    const float* const center = points_.row(candidate);
    pass(row_bytes() + 12, [&](std::size_t first, std::size_t last, Sums& sums) {
      loops_.distances(points_.row(first), last - first, center, points_.stride,
                       trial_costs_.data() + first);
      for (std::size_t at = first; at < last; ++at) {
        trial_costs_[at] *= points_.weights[at];
        weigh(at, trial_costs_[at], sums);
      }
    });
    return open_if_better(candidate, trial_costs_.data(), z);
  }

  // A point that would be cheaper at the candidate goes there. The others would only if their
  // center closed, and then cost more.
  void weigh(std::size_t point, float cost, Sums& sums) const {
    const float gain = costs_[point] - cost;
    (gain > 0 ? sums.saved : sums.kept[of_[point]]) += gain;
  }

  double open_if_better(std::uint32_t candidate, const float* costs, double z) {
    // Of each center: its new index, or none if it closes.
    constexpr std::uint32_t kCloses = ~std::uint32_t{0};
    std::vector<std::uint32_t> now(centers_.size(), kCloses);
    std::vector<std::uint32_t> open;
    double saves = saved() - z;
    for (std::size_t center = 0; center < centers_.size(); ++center) {
      double closing = z;
      for (const Sums& sums : sums_) closing += sums.kept[center];
      if (closing > 0) {
        saves += closing;
      } else {
        now[center] = static_cast<std::uint32_t>(open.size());
        open.push_back(centers_[center]);
      }
    }
    if (!(saves > 0)) return 0;
    const auto own = static_cast<std::uint32_t>(open.size());
    pass(16, [&](std::size_t first, std::size_t last, Sums&) {
      for (std::size_t at = first; at < last; ++at) {
        const std::uint32_t old = now[of_[at]];
        const bool moves = costs[at] < costs_[at] || old == kCloses;
        of_[at] = moves ? own : old;
        if (moves) costs_[at] = costs[at];
      }
    });
    open.push_back(candidate);
    centers_ = std::move(open);
    return saves;
  }

  Team& team_;
  const Points points_;
  const SearchTerms terms_;
  const Memory& memory_;
  const VectorLoops& loops_ = vector_loops();
  std::mt19937_64 random_;
  Array<float> costs_;        // of each point at its center
  Array<float> trial_costs_;  // at the candidate
  Array<std::uint32_t> of_;   // an index of centers_
  std::vector<std::uint32_t> centers_;
  std::vector<std::uint32_t> candidates_;
  std::optional<Array<float>> kept_costs_;  // a row for each candidate
  std::vector<std::uint32_t> order_;
  std::vector<Sums> sums_;
  double traffic_bytes_ = 0;
};

}  // namespace

std::size_t candidates_of(std::size_t points, std::size_t least_centers) {
  return std::min(points, trials_of(least_centers));
}

Clustering local_search(Team& team, const Memory& memory, const Points& points,
                        const SearchTerms& terms, std::uint64_t seed) {
  return Search(team, memory, points, terms, seed).run();
}

}  // namespace atl::kernels
