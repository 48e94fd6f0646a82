// Shared parts of the profiler's tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/profiler.hpp"

namespace atl::runtime {

// One worker, played by the test's own thread.
struct OneWorker {
  WorkerCounts counts;
  Profiler profiler;
  Recorder& recorder;
  explicit OneWorker(std::size_t trace_events = 0)
      : profiler(std::vector<WorkerCounts*>{&counts}, {.trace_events = trace_events, .l3 = true}),
        recorder(profiler.recorder(0)) {
    profiler.attach(0);
  }
  ~OneWorker() {
    if (Recorder::current() == &recorder) profiler.detach(0);
  }
  std::vector<SectionProfile> sections() { return profiler.snapshot().workers[0].sections; }
};

// The trace as JSON, and by whose track it is.
inline nlohmann::json trace_of(Profiler& profiler) {
  // Tests run beside each other, each in a process of its own.
  const std::string path = testing::TempDir() + "/trace-" + std::to_string(getpid()) + ".json";
  profiler.write_trace(path);
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file);
  std::remove(path.c_str());
  return json.at("traceEvents");
}

}  // namespace atl::runtime
