// The local share as it is estimated from pages.
#include "locality.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace atl::workloads {
namespace {

using Bytes = std::vector<std::uint64_t>;

TEST(Locality, CountsTheBytesOfEachNode) {
  std::istringstream text(
      "55d0 default file=/bin/N1=7 mapped=3 N0=2 N3=1 kernelpagesize_kB=4\n"
      "55d1 default heap anon=3 dirty=3 N0=2 N3=1 kernelpagesize_kB=4\n"
      "7f3a interleave:0-3 anon=512 dirty=512 N0=1 N1=256 kernelpagesize_kB=4\n"
      "7f3b prefer (many):0,2 huge dirty=3 N2=3 kernelpagesize_kB=2048\n"
      "7f3c default stack:9\n");
  EXPECT_EQ(bytes_by_node(text), (Bytes{3 << 12, 256 << 12, 3 << 21, 1 << 12}));
  std::istringstream nothing("");
  EXPECT_EQ(bytes_by_node(nothing), Bytes{});
}

TEST(Locality, IsTheMeanOfTheNodesSharesByTheirWork) {
  EXPECT_EQ(local_share({100, 300}, {2}), 0.25);
  EXPECT_EQ(local_share({100, 300}, {0.25, 0.75}), 0.625);
  EXPECT_EQ(local_share({100, 300}, {0, 0, 1}), 0);
  EXPECT_EQ(local_share({100, 300}, {}), std::nullopt);
  EXPECT_EQ(local_share({100, 300}, {0, 0}), std::nullopt);
  EXPECT_EQ(local_share({0, 0}, {1}), std::nullopt);
}

}  // namespace
}  // namespace atl::workloads
