// Facility location by local search: finds about how many of the points serve as centers, and
// which.
//
// Charikar and Guha ("Improved combinatorial algorithms for the facility location and k-median
// problems", FOCS 1999), as O'Callaghan, Mishra, Meyerson, Guha and Motwani use it for streams
// ("Streaming-data algorithms for high-quality clustering", ICDE 2002) and as PARSEC's
// StreamCluster has it: a center costs z, a point its weight times the square of its distance to
// its center. A first solution opens each point with a probability that grows with its cost
// (Meyerson's online facility location). Then candidates are tried again and again: what would be
// saved if the candidate were opened, the points nearer to it moved there, and the centers closed
// that this leaves too few points? A binary search over z ends with as many centers as are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "team.hpp"

namespace atl::kernels {

// Rows begin at a multiple of 64 bytes; what a row has past its dimensions is zero.
struct Points {
  const float* coordinates;
  const float* weights;
  std::size_t count;
  std::size_t stride;  // floats from one row to the next

  [[nodiscard]] const float* row(std::size_t point) const { return coordinates + point * stride; }
};

struct SearchTerms {
  std::size_t least_centers;
  std::size_t most_centers;
  // Keep each point's distance to each candidate, in place of computing it again for each trial.
  bool keep_distances = false;
};

struct Clustering {
  std::vector<std::uint32_t> centers;  // points
  std::vector<std::uint32_t> of;       // for each point an index of `centers`
  double cost = 0;                     // of the points; z is not in it
  double traffic_bytes = 0;            // of the arrays that the passes read and wrote
};

// How many candidates a search tries.
[[nodiscard]] std::size_t candidates_of(std::size_t points, std::size_t least_centers);

// Has `most_centers` centers at most, and `least_centers` at least, if any z gives as many.
[[nodiscard]] Clustering local_search(Team& team, const Memory& memory, const Points& points,
                                      const SearchTerms& terms, std::uint64_t seed);

}  // namespace atl::kernels
