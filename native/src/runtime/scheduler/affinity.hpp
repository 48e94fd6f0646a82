// Where threads may run and where their memory comes from: the runtime's calls to the kernel.
#pragma once

#include <span>
#include <vector>

namespace atl::runtime {

int this_thread();  // the kernel's id of it

// OS indices of the CPUs that a thread may run on, sorted; 0: the calling one. Empty: there is no
// such thread.
std::vector<int> cpus_of_thread(int thread);
inline std::vector<int> cpus_of_this_thread() { return cpus_of_thread(0); }

// False where the kernel refuses (CPUs that the cgroup no longer has): the thread stays where it
// was.
bool bind_thread(int thread, std::span<const int> cpus);

// New pages of the calling thread come from this node if it has any left. Preferred, not bound:
// a bound node can be full while others are empty. Does nothing where there are no nodes.
void prefer_node(int node);

}  // namespace atl::runtime
