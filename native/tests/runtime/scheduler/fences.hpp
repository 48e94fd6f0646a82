// Tests with both kinds of fences: membarrier's, if the kernel has it, and full ones.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "scheduler/asymmetric_fence.hpp"

namespace atl::test {

class WithFences : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    runtime::choose_fences();
    kernels_ = detail::membarrier_works;
    if (GetParam() && !kernels_) GTEST_SKIP() << "this kernel has no membarrier";
    detail::membarrier_works = GetParam();  // no thread runs yet
  }
  void TearDown() override { detail::membarrier_works = kernels_; }

 private:
  bool kernels_ = false;
};

inline std::string fences_name(const ::testing::TestParamInfo<bool>& kind) {
  return kind.param ? "membarrier" : "full";
}

}  // namespace atl::test
