// perf-indexes: what a lookup takes in one index, ours or a peer's (perf/indexes.py).
//
//   perf-indexes                              the names of the indexes, one a line
//   perf-indexes INDEX DATASET KEYS PROBES    one JSON object
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "subject.hpp"

namespace atl::perf {
namespace {

constexpr int kPasses = 3;  // the first one also brings the index into the caches

// CPU time of this thread, which other work on the machine disturbs less than the time that passes.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

int measure(Make make, const workloads::DataSpec& spec) {
  std::vector<Record> rows(spec.groups);
  workloads::fill_keys(spec.groups, spec.seed, 0, rows);
  std::vector<Record> probes(spec.records);
  workloads::fill(spec, 0, probes);
  const std::unique_ptr<Subject> subject = make();
  const double begin = cpu_s();
  subject->build(rows);
  const double build_s = cpu_s() - begin;
  Joined sums;
  std::vector<double> passes;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double start = cpu_s();
    sums = subject->look_up(probes);
    passes.push_back(cpu_s() - start);
  }
  std::printf("{\"build_s\": %.6f, \"lookup_ns\": %.3f, \"answer\": [%lu, %lu, %lu]}\n", build_s,
              *std::min_element(passes.begin(), passes.end()) / double(probes.size()) * 1e9,
              sums.rows, sums.build_sum, sums.probe_sum);
  return 0;
}

}  // namespace
}  // namespace atl::perf

int main(int argc, char** argv) {
  using namespace atl;
  if (argc == 1) {
    for (const auto& [name, make] : perf::subjects()) std::puts(std::string(name).c_str());
    return 0;
  }
  const auto found = argc == 5 ? perf::subjects().find(argv[1]) : perf::subjects().end();
  const auto dataset = argc == 5 ? workloads::dataset_named(argv[2]) : std::nullopt;
  if (found == perf::subjects().end() || !dataset) {
    std::fputs("usage: perf-indexes INDEX DATASET KEYS PROBES\n", stderr);
    return 2;
  }
  const auto keys = std::strtoull(argv[3], nullptr, 10);
  const auto probes = std::strtoull(argv[4], nullptr, 10);
  return perf::measure(found->second, {*dataset, probes, keys, 1});
}
