// move's kernels: every instruction set of this CPU against the closed form, and its whole
// requests.

#include "move.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ask.hpp"
#include "move_kernels.hpp"
#include "parts.hpp"

namespace atl::probe {
namespace {

constexpr MoveOp kOps[] = {MoveOp::read,  MoveOp::write, MoveOp::copy,
                           MoveOp::scale, MoveOp::add,   MoveOp::triad};
constexpr Isa kIsas[] = {Isa::scalar, Isa::sse2, Isa::avx2, Isa::avx512, Isa::neon};
constexpr std::size_t kFirst = 1016;  // so that the sources' period ends within a chunk

// Three arrays with a line before and after each that nobody may write.
class Arrays {
 public:
  explicit Arrays(std::size_t elements) : elements_(elements) {
    const std::size_t doubles = elements + 2 * kChunkElements;
    for (auto& array : arrays_) {
      const std::size_t bytes =
          (doubles * sizeof(double) + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
      array.reset(static_cast<double*>(std::aligned_alloc(kChunkBytes, bytes)));
      for (std::size_t i = 0; i < bytes / sizeof(double); ++i) array.get()[i] = kGuard;
    }
  }
  double* at(std::size_t array) const { return arrays_[array].get() + kChunkElements; }
  Streams streams() const { return {at(0), at(1), at(2), elements_}; }
  bool guarded() const {
    for (const auto& array : arrays_) {
      for (std::size_t i = 0; i < kChunkElements; ++i) {
        if (array.get()[i] != kGuard) return false;
        if (array.get()[kChunkElements + elements_ + i] != kGuard) return false;
      }
    }
    return true;
  }

 private:
  static constexpr double kGuard = -77.0;
  struct Free {
    void operator()(double* data) const { std::free(data); }
  };
  std::size_t elements_;
  std::unique_ptr<double, Free> arrays_[3];
};

template <typename Check>
void for_each_kernel(Check check) {
  for (const Isa isa : kIsas) {
    if (!isa_runs_here(isa)) continue;
    for (const MoveOp op : kOps) {
      for (const Store store : {Store::temporal, Store::streaming}) {
        const MoveKernel kernel = move_kernel(op, store, isa);
        if (kernel == nullptr) continue;  // streaming, where there is no such store
        SCOPED_TRACE(std::string(name_of(isa)) + " op " + std::to_string(static_cast<int>(op)) +
                     (store == Store::streaming ? " streaming" : " temporal"));
        check(op, kernel);
      }
    }
  }
}

TEST(MoveKernels, GiveTheClosedFormForEveryLengthAndWriteNothingElse) {
  for_each_kernel([](MoveOp op, MoveKernel kernel) {
    for (const std::size_t elements : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 100, 129, 1031}) {
      const Arrays arrays(elements);
      move_fill(op, arrays.at(0), arrays.at(1), arrays.at(2), kFirst, elements);
      const double sum = kernel(arrays.streams(), 2);
      EXPECT_TRUE(move_verify(op, arrays.at(0), kFirst, elements)) << elements;
      EXPECT_TRUE(arrays.guarded()) << elements;
      EXPECT_EQ(sum, op == MoveOp::read ? expected_sum(kFirst, elements) : 0.0) << elements;
    }
  });
}

TEST(MoveKernels, NoPassLeavesEverythingAsItWas) {
  for_each_kernel([](MoveOp op, MoveKernel kernel) {
    const Arrays arrays(64);
    move_fill(op, arrays.at(0), arrays.at(1), arrays.at(2), 0, 64);
    EXPECT_EQ(kernel(arrays.streams(), 0), 0.0);
    EXPECT_EQ(move_verify(op, arrays.at(0), 0, 64), op == MoveOp::read);
  });
}

TEST(MoveVerify, FindsOneWrongElementAnywhere) {
  for (const MoveOp op : kOps) {
    constexpr std::size_t kElements = 100;
    const Arrays arrays(kElements);
    move_fill(op, arrays.at(0), arrays.at(1), arrays.at(2), kFirst, kElements);
    static_cast<void>(move_kernel(op, Store::temporal, Isa::scalar)(arrays.streams(), 1));
    ASSERT_TRUE(move_verify(op, arrays.at(0), kFirst, kElements));
    for (const std::size_t wrong : {0, 42, 99}) {
      const double right = arrays.at(0)[wrong];
      arrays.at(0)[wrong] = right + 1;
      EXPECT_FALSE(move_verify(op, arrays.at(0), kFirst, kElements));
      arrays.at(0)[wrong] = right;
    }
  }
}

TEST(MoveVerify, FindsAChunkThatBelongsElsewhere) {
  const Arrays arrays(64);
  move_fill(MoveOp::copy, arrays.at(0), arrays.at(1), arrays.at(2), 8, 64);
  static_cast<void>(move_kernel(MoveOp::copy, Store::temporal, Isa::scalar)(arrays.streams(), 1));
  EXPECT_TRUE(move_verify(MoveOp::copy, arrays.at(0), 8, 64));
  EXPECT_FALSE(move_verify(MoveOp::copy, arrays.at(0), 0, 64));
}

TEST(MoveLayout, ArraysDoNotOverlapAndBeginAtALine) {
  for (const MoveOp op : kOps) {
    for (std::size_t bytes = 24; bytes < 100'000; bytes = bytes * 5 / 3 + 1) {
      const MoveLayout layout = move_layout(op, bytes);
      EXPECT_LE(layout.elements * bytes_per_element(op), bytes);
      EXPECT_GT((layout.elements + 1) * bytes_per_element(op), bytes);
      EXPECT_GE(layout.stride_bytes, layout.elements * sizeof(double));
      EXPECT_EQ(layout.stride_bytes % kChunkBytes, 0U);
      EXPECT_GE(layout.total_bytes,
                (arrays_of(op) - 1) * layout.stride_bytes + layout.elements * sizeof(double));
    }
  }
}

TEST(PartOf, CoversEverythingOnceAndEvenly) {
  for (const std::size_t granule : {1, 8, 64}) {
    for (std::size_t parts = 1; parts < 20; ++parts) {
      for (std::size_t count = 0; count < 700; count += 1 + count / 9) {
        std::size_t at = 0;
        std::size_t least = count;
        std::size_t most = 0;
        for (std::size_t index = 0; index < parts; ++index) {
          const Part part = part_of(count, parts, index, granule);
          ASSERT_EQ(part.begin, at);
          ASSERT_LE(part.begin, part.end);
          ASSERT_TRUE(part.begin % granule == 0 || part.begin == count);
          least = std::min(least, part.end - part.begin);
          most = std::max(most, part.end - part.begin);
          at = part.end;
        }
        ASSERT_EQ(at, count);
        ASSERT_LT(most - least, 2 * granule);
      }
    }
  }
}

Json ask_move(const std::string& fields) {
  return move(Request(Json::parse(R"({"budget_ns": 1000000, "samples": 3, "cpus": )" +
                                  first_cpus(1) + ", " + fields + "}")));
}

TEST(Move, EveryOperationIsVerifiedAndCounted) {
  for (const char* op : {"read", "write", "copy", "scale", "add", "triad"}) {
    for (const char* store : {"temporal", "streaming"}) {
      const Json answer = ask_move(R"("bytes": 9000, "op": ")" + std::string(op) +
                                   R"(", "store": ")" + store + '"');
      EXPECT_EQ(answer["gbs"].size(), 3U);
      EXPECT_TRUE(answer["verified"]);
      EXPECT_GT(answer["gbs"][0].get<double>(), 0.0);
      const auto pass_bytes =
          answer["moved_bytes"].get<std::size_t>() / answer["passes"].get<std::size_t>() / 3;
      EXPECT_LE(pass_bytes, 9000U);
      EXPECT_GT(pass_bytes, 9000U - 24U);
      EXPECT_LT(answer["begin_ns"].get<std::int64_t>(), answer["end_ns"].get<std::int64_t>());
      EXPECT_EQ(answer["threads"].size(), 1U);
    }
  }
}

TEST(Move, GoesOnForAsLongAsItIsTold) {
  const Json answer = ask_move(R"("bytes": 9000, "op": "copy", "run_ns": 5000000)");
  EXPECT_GE(answer["end_ns"].get<std::int64_t>() - answer["begin_ns"].get<std::int64_t>(),
            5'000'000);
  EXPECT_LE(answer["gbs"].size(), 3U);
}

TEST(Move, TheNullRunWritesNothing) {
  EXPECT_TRUE(ask_move(R"("bytes": 9000, "op": "triad", "null": true)")["verified"]);
}

TEST(Move, RefusesWhatItCannotDo) {
  for (const char* fields : {R"("bytes": 127, "op": "copy")", R"("bytes": 9000, "op": "sort")",
                             R"("bytes": 9000, "op": "copy", "isa": "mmx")",
                             R"("bytes": 9000, "op": "copy", "start_ns": 9000000000000000000)"}) {
    try {
      ask_move(fields);
      FAIL() << fields;
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.code(), Code::kArgument) << fields;
    }
  }
  try {
    ask_move(R"("bytes": 70000000000000, "op": "copy")");
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_NE(fault.code(), Code::kKernel);
  }
}

}  // namespace
}  // namespace atl::probe
