// For the tests of the probe: the CPUs of this process, and a request's answer.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol.hpp"

namespace atl::probe {

inline std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return cpus;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

// The first of them, `most` at most, as a request has them: "[2,3]".
inline std::string first_cpus(std::size_t most) {
  std::vector<int> cpus = allowed_cpus();
  cpus.resize(std::min(cpus.size(), most));
  return Json(cpus).dump();
}

// A CPU number that no machine of the tests has.
inline constexpr int kAbsentCpu = kMostCpus - 1;

inline Json asked(const Json& request) { return Json::parse(answer(request.dump())); }

// The code of the refusal; empty where there was none.
inline std::string code_of(const std::string& line) {
  const Json answered = Json::parse(answer(line));
  if (answered.at("ok").get<bool>()) return "";
  EXPECT_FALSE(answered.at("error").get<std::string>().empty());
  return answered.at("code");
}
inline std::string code_of(const Json& request) { return code_of(request.dump()); }

}  // namespace atl::probe
