// atoll-workload: the workloads of "The Art of Efficient In-memory Query Processing on NUMA
// Systems: a Systematic Approach" (numa-query-tuning), table I: W1 to W4.
//
//   atoll-exec -i all --malloc tbbmalloc -- atoll-workload w1 --threads 16
//
// Where its threads and memory go, and which malloc it has, is the business of atoll-exec.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "base/program.hpp"
#include "options.hpp"
#include "run.hpp"

namespace atl::workloads {
namespace {

constexpr const char* kHelp = R"(Usage: atoll-workload WORKLOAD [FLAGS]

Runs a workload of numa-query-tuning, checks its answer, and prints one JSON
object.

Workloads
  w1   the median of each group (holistic aggregation)
  w2   the count of each group (distributive aggregation)
  w3   a hash join without partitioning
  w4   a join by an index that is there before

Flags, with their defaults in parentheses
  --scheduler plain|atoll  threads of their own, or Atoll's task runtime (plain)
  --variant paper|fast     as in the paper, or the fastest way that we know
                           (paper)
  --index art|masstree|btree|skiplist
                           of w4 (art)
  --dataset NAME           moving-cluster (w1), zipf (w2), sequential (w3, w4),
                           runs, heavy-hitter
  --records N              rows; w3, w4: of the larger table (10,000,000;
                           w3, w4: 16,000,000)
  --groups N               keys; w3, w4: rows of the smaller table (one for 100
                           records; w3, w4: for 16)
  --key-step N             keys are N apart, so that no array has a place for
                           each (1)
  --threads N              (the CPUs that this process may use)
  --seed N                 of the data (1)
  --runs N                 on the same data (3)
  --pin CPU,CPU,...        bind plain threads to these CPUs, in turn
  --keep                   w3, w4: keep the joined rows, by malloc, instead of
                           summing them
  --no-check               do not check the answer by sorting
  --save DIR               write records.bin, and keys.bin (w3, w4) or
                           answer.bin (w1, w2): pairs of 64-bit integers
  --help, --version

Placement, memory policy and malloc: atoll-exec [FLAGS] -- atoll-workload w1

Exit status: 0; 1 wrong answer; 2 wrong usage or too little memory; 5 another
failure
)";

int serve(int argc, char** argv) {
  const Options options = parse_options(argc, argv, base::allowed_cpus());
  if (options.help) {
    base::print(kHelp);
  } else if (options.version) {
    base::print("atoll-workload " ATOLL_VERSION "\n");
  } else {
    base::print(as_json(options, run(options)) + "\n");
  }
  return 0;
}

int failed(const char* why, int status) {
  std::fprintf(stderr, "atoll-workload: %s\n", why);
  return status;
}

}  // namespace
}  // namespace atl::workloads

int main(int argc, char** argv) {
  using namespace atl::workloads;
  try {
    return serve(argc, argv);
  } catch (const UsageFault& fault) {
    return failed(fault.what(), 2);
  } catch (const WrongAnswer& fault) {
    return failed(fault.what(), 1);
  } catch (const std::bad_alloc&) {
    return failed("malloc or mmap refused; use fewer --records, or a larger memory limit", 5);
  } catch (const std::exception& fault) {
    return failed(fault.what(), 5);
  }
}
