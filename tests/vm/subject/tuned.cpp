// What `atoll tune` runs in the guest: a program of OpenMP whose time depends on one switch.
//
//     tuned LOG   appends 'AUTONUMA POLICY BINDING CPUS', then sleeps 2 s (1 s without AutoNUMA)
//     tuned       takes all memory that there is
//
// It prints nothing: a setting that changes the output would be left out.

#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  if (argc < 2) {
    for (constexpr std::size_t size = 1 << 20;;) std::memset(std::malloc(size), 1, size);
  }
  int autonuma = -1;
  int policy = -1;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/numa_balancing", "r")) {
    if (std::fscanf(file, "%d", &autonuma) != 1) return 3;
    std::fclose(file);
  }
  syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0);
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  // Under a binding the first thread has one place: the places together are the mask.
  const int count = omp_get_num_places() > 0 ? omp_get_num_places() : CPU_COUNT(&cpus);
  std::FILE* log = std::fopen(argv[1], "a");
  if (log == nullptr) return 3;
  std::fprintf(log, "%d %d %d %d\n", autonuma, policy, static_cast<int>(omp_get_proc_bind()),
               count);
  std::fclose(log);
  usleep(autonuma == 0 ? 1'000'000 : 2'000'000);
}
