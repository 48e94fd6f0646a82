// One vector in a chunk for each thread, down to chunks of no byte.

#include "vector.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ask.hpp"
#include "vector_kernels.hpp"

namespace atl::probe {
namespace {

TEST(VectorPart, CoversEveryByteOnceAndAtLinesWhereThereAreEnough) {
  for (std::size_t threads = 1; threads < 100; threads += 3) {
    for (std::size_t bytes = 1; bytes < 100'000; bytes = bytes * 4 / 3 + 1) {
      std::size_t at = 0;
      for (std::size_t index = 0; index < threads; ++index) {
        const Part part = vector_part(bytes, threads, index);
        ASSERT_EQ(part.begin, at);
        if (bytes >= threads * kVectorLineBytes) {
          ASSERT_EQ(part.begin % kVectorLineBytes, 0U);
          ASSERT_GT(part.end, part.begin);
        }
        at = part.end;
      }
      ASSERT_EQ(at, bytes);
    }
  }
}

TEST(VectorKernels, WriteAndReadEveryByteAtAnyAddress) {
  for (const std::size_t offset : {0, 1, 7, 63}) {
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
      std::vector<std::byte> memory(400, std::byte{0});
      std::byte* const data = memory.data() + offset;
      vector_write(data, bytes, 9);
      ASSERT_TRUE(vector_verify(data, bytes, 9));
      ASSERT_EQ(vector_read(data, bytes), vector_sum(bytes, 9));
      for (std::size_t i = 0; i < offset; ++i) ASSERT_EQ(memory[i], std::byte{0});
      ASSERT_EQ(data[bytes], std::byte{0});
    }
  }
}

TEST(VectorVerify, FindsOneStaleByte) {
  std::vector<std::byte> memory(100);
  vector_write(memory.data(), 100, vector_value(5));
  memory[71] = std::byte{vector_value(4)};
  EXPECT_FALSE(vector_verify(memory.data(), 100, vector_value(5)));
  EXPECT_NE(vector_read(memory.data(), 100), vector_sum(100, vector_value(5)));
}

TEST(VectorValue, IsNeverZeroNorTheOneBefore) {
  for (std::size_t iteration = 0; iteration < 1'000; ++iteration) {
    EXPECT_NE(vector_value(iteration), 0);
    EXPECT_NE(vector_value(iteration), vector_value(iteration + 1));
  }
}

TEST(Vector, WritesAndReadsFromOneByteUp) {
  const std::string cpus = first_cpus(2);
  for (const char* op : {"write", "read"}) {
    for (const int bytes : {1, 38, 380, 100'000}) {
      for (const char* null_run : {"false", "true"}) {
        const Json answer = vector(Request(
            Json::parse(R"({"budget_ns": 1000000, "samples": 3, "iterations": 40, "cpus": )" +
                        cpus + R"(, "bytes": )" + std::to_string(bytes) + R"(, "op": ")" + op +
                        R"(", "null": )" + null_run + "}")));
        EXPECT_EQ(answer["gbs"].size(), 3U);
        EXPECT_TRUE(answer["verified"]);
        EXPECT_GE(answer["batch"].get<int>(), 1);
      }
    }
  }
}

}  // namespace
}  // namespace atl::probe
