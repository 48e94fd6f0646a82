// StreamCluster (PARSEC; ARCAS 5.3): the centers of a stream of points that comes in chunks.
//
// Each chunk of points is clustered by itself (local_search.hpp); its centers move to the mean of
// their points, with the number of these as weight. The centers of all chunks are points in turn,
// which are clustered in the end: so a stream needs the memory of a chunk. (O'Callaghan et al.,
// ICDE 2002.) The paper has 1,000,000 points of 128 floats in chunks of 200,000, wants 10 to 20
// centers, and allows 5,000 of chunks.
//
// A trial of a candidate is a pass over all points of the chunk, each 512 bytes, with a few
// additions for each float; there are thousands of passes. So it is memory's bandwidth that counts,
// unless the chunk (100 MB) is in the caches: that is why ARCAS gains by workers on more chiplets,
// each of which then keeps its part of the chunk in its L3. A pass is a loop whose pieces the
// scheduler gives out. Sums are of each rank; what follows a pass is of the number of centers.
//
// With `--distances kept` the distances to the few candidates are computed once in a chunk, since a
// search tries each of them many times: a trial then reads 12 bytes of a point in place of 524.
// That is no longer the program of the paper, and several times as fast.
//
// Check: the number of centers of each chunk and in the end; each chunk's cost, which the search
// has kept up to date, against that of its assignment, computed in doubles; and the cost of all
// points with the final centers against as many centers chosen by k-means++, of which it may
// be 1.25 times at most.
#include "streamcluster/streamcluster.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "hash.hpp"
#include "vectors.hpp"

namespace atl::kernels {
namespace {

constexpr double kWorst = 1.25;  // of the cost of k-means++

// Uniform in [0, 1) as in PARSEC. The same for any team.
Array<float> make_points(Team& team, const Memory& memory, std::size_t count,
                         std::size_t dimensions, std::uint64_t seed) {
  using workloads::kGolden;
  using workloads::mixed;
  const std::size_t stride = padded(dimensions);
  Array<float> points = make_array<float>(memory, count * stride);
  team.loop(count, 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t point = first; point < last; ++point) {
      const std::uint64_t key = mixed(mixed(seed + kGolden) + point * kGolden);
      for (std::size_t at = 0; at < dimensions; ++at) {
        points[point * stride + at] =
            static_cast<float>(mixed(key + at * kGolden) >> 40) * 0x1p-24F;
      }
    }
  });
  return points;
}

// Points that are there to be clustered later.
struct Kept {
  std::vector<float> rows;
  std::vector<float> weights;
};

// The means of the centers' points, as doubles are added.
void add_means(const Points& points, const Clustering& clustering, Kept& kept) {
  std::vector<double> sums(clustering.centers.size() * points.stride, 0.0);
  std::vector<double> weights(clustering.centers.size(), 0.0);
  for (std::size_t point = 0; point < points.count; ++point) {
    const std::size_t center = clustering.of[point];
    const double weight = points.weights[point];
    weights[center] += weight;
    for (std::size_t at = 0; at < points.stride; ++at) {
      sums[center * points.stride + at] += weight * points.row(point)[at];
    }
  }
  for (std::size_t at = 0; at < sums.size(); ++at) {
    const double weight = weights[at / points.stride];
    kept.rows.push_back(weight == 0 ? 0 : static_cast<float>(sums[at] / weight));
  }
  for (const double weight : weights) kept.weights.push_back(static_cast<float>(weight));
}

// Of each point the row and the center; of a chunk the arrays of a search, and perhaps distances.
std::uint64_t streamcluster_needed(const Settings& settings, int) {
  const std::uint64_t points = settings.number("points");
  const std::uint64_t chunk = std::min(points, settings.number("chunk"));
  // Of all chunks; they grow in a vector, and are copied and clustered in the end.
  const std::uint64_t centers =
      (points + chunk - 1) / chunk * std::min(chunk, settings.number("most-centers"));
  const std::uint64_t searched = std::max(chunk, centers);
  const std::uint64_t kept = settings.text("distances") == "kept"
                                 ? 4 * candidates_of(searched, settings.number("least-centers"))
                                 : 0;
  const std::uint64_t row = 4 * padded(settings.number("dimensions"));
  return points * (row + 4) + 4 * centers * row + searched * (40 + kept);
}

SearchTerms terms_of(const Settings& settings) {
  const SearchTerms terms{settings.number("least-centers"), settings.number("most-centers"),
                          settings.text("distances") == "kept"};
  if (terms.least_centers > terms.most_centers) {
    throw UsageFault("--least-centers " + settings.text("least-centers") +
                     ": more than --most-centers " + settings.text("most-centers"));
  }
  return terms;
}

// Fewer only where no more points differ, and so cost nothing.
void check_count(const SearchTerms& terms, std::size_t centers, double cost) {
  if (centers <= terms.most_centers && (centers >= terms.least_centers || cost == 0)) return;
  throw WrongAnswer("streamcluster: " + std::to_string(centers) + " centers, not " +
                    std::to_string(terms.least_centers) + " to " +
                    std::to_string(terms.most_centers));
}

}  // namespace

double plain_cost(const Points& points, const Clustering& clustering) {
  double sum = 0;
  for (std::size_t point = 0; point < points.count; ++point) {
    const float* const center = points.row(clustering.centers.at(clustering.of.at(point)));
    double square = 0;
    for (std::size_t at = 0; at < points.stride; ++at) {
      const double apart = double{points.row(point)[at]} - double{center[at]};
      square += apart * apart;
    }
    sum += points.weights[point] * square;
  }
  return sum;
}

double nearest_cost(Team& team, const Points& points, const std::vector<float>& centers) {
  std::atomic<double> all{0};
  team.loop(points.count, 0, [&](std::size_t first, std::size_t last) {
    double sum = 0;
    for (std::size_t point = first; point < last; ++point) {
      float least = std::numeric_limits<float>::max();
      for (std::size_t row = 0; row < centers.size(); row += points.stride) {
        float square = 0;
        for (std::size_t at = 0; at < points.stride; ++at) {
          const float apart = points.row(point)[at] - centers[row + at];
          square += apart * apart;
        }
        least = std::min(least, square);
      }
      sum += least;
    }
    all.fetch_add(sum, std::memory_order_relaxed);  // read after the loop
  });
  return all;
}

std::vector<float> plus_plus(const Points& points, std::size_t centers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> least(points.count, std::numeric_limits<double>::max());
  std::vector<float> rows;
  std::size_t chosen = random() % points.count;
  for (std::size_t center = 0; center < centers; ++center) {
    rows.insert(rows.end(), points.row(chosen), points.row(chosen) + points.stride);
    double all = 0;
    for (std::size_t point = 0; point < points.count; ++point) {
      double square = 0;
      for (std::size_t at = 0; at < points.stride; ++at) {
        const double apart = double{points.row(point)[at]} - double{points.row(chosen)[at]};
        square += apart * apart;
      }
      least[point] = std::min(least[point], square);
      all += least[point];
    }
    double until = std::uniform_real_distribution<double>(0, all)(random);
    for (chosen = 0; chosen + 1 < points.count && (until -= least[chosen]) > 0;) ++chosen;
  }
  return rows;
}

namespace {

Result run_streamcluster(Team& team, const Settings& settings, Conditions& conditions) {
  const SearchTerms terms = terms_of(settings);
  const std::size_t count = settings.number("points");
  const std::size_t chunk = std::min<std::size_t>(settings.number("chunk"), count);
  const std::size_t stride = padded(settings.number("dimensions"));
  const auto begin = std::chrono::steady_clock::now();
  const Array<float> coordinates =
      make_points(team, conditions.memory, count, settings.number("dimensions"), conditions.seed);
  const std::vector<float> ones(chunk, 1.0F);
  const Points all{coordinates.data(), ones.data(), count, stride};
  conditions.make_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::vector<Points> chunks;
  for (std::size_t first = 0; first < count; first += chunk) {
    chunks.push_back({all.row(first), ones.data(), std::min(chunk, count - first), stride});
  }
  std::vector<Clustering> found;
  Clustering of_centers;
  Kept last;
  double traffic = 0;
  double cost = 0;
  double by_chance = 0;
  time_runs(
      conditions, [&](int) { found.clear(); },
      [&](int) {
        Kept kept;
        traffic = 0;
        for (const Points& points : chunks) {
          found.push_back(
              local_search(team, conditions.memory, points, terms, conditions.seed + found.size()));
          add_means(points, found.back(), kept);
          traffic += found.back().traffic_bytes +
                     static_cast<double>(points.count * stride * sizeof(float));
        }
        last = {};
        // Rows of a vector may begin anywhere.
        Array<float> rows = make_array<float>(conditions.memory, kept.rows.size());
        std::copy(kept.rows.begin(), kept.rows.end(), rows.begin());
        const Points centers{rows.data(), kept.weights.data(), kept.weights.size(), stride};
        of_centers = local_search(team, conditions.memory, centers, terms, conditions.seed);
        add_means(centers, of_centers, last);
      },
      [&](int) {
        check_count(terms, of_centers.centers.size(), of_centers.cost);
        for (std::size_t at = 0; at < chunks.size(); ++at) {
          check_count(terms, found[at].centers.size(), found[at].cost);
          const double plain = plain_cost(chunks[at], found[at]);
          if (std::abs(found[at].cost - plain) <= 1e-4 * plain + 1e-9) continue;
          throw WrongAnswer("streamcluster: chunk " + std::to_string(at) + " costs " +
                            std::to_string(plain) + ", not " + std::to_string(found[at].cost));
        }
        cost = nearest_cost(team, all, last.rows);
        // Chosen of the first chunk, which has all kinds of points.
        if (by_chance == 0) {
          by_chance = nearest_cost(team, all,
                                   plus_plus(chunks.front(), last.weights.size(), conditions.seed));
        }
        if (cost <= kWorst * by_chance + 1e-9) return;
        throw WrongAnswer("streamcluster: the centers cost " + std::to_string(cost) +
                          "; as many by k-means++ cost " + std::to_string(by_chance));
      });
  return {.work = static_cast<double>(count),
          .traffic_bytes = traffic,
          .figures = {{"centers", static_cast<double>(last.weights.size())},
                      {"cost", cost},
                      {"cost_by_k_means_plus_plus", by_chance},
                      {"passes", traffic / static_cast<double>(count * stride * sizeof(float))}}};
}

}  // namespace

const Workload& streamcluster() {
  static const Workload workload = {
      "streamcluster",
      "centers of a stream of points in chunks (PARSEC's StreamCluster)",
      "points",
      {{"points", "200000", "of the stream", 1, UINT32_MAX},
       {"dimensions", "128", "floats of a point", 1, 1 << 16},
       {"chunk", "200000", "points that are clustered at a time", 1, UINT32_MAX},
       {"least-centers", "10", "of a chunk and in the end", 1, 10'000},
       {"most-centers", "20", "of a chunk and in the end", 1, 10'000},
       {"distances",
        "again",
        "to a candidate: computed again for each trial, or kept",
        0,
        0,
        {"again", "kept"}}},
      streamcluster_needed,
      run_streamcluster,
  };
  return workload;
}

}  // namespace atl::kernels
