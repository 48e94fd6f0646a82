// Sets where threads may run and where their memory comes from, by calls to the kernel.
#pragma once

#include <span>
#include <vector>

namespace atl::runtime {

int this_thread();  // the kernel's id of it

// OS indices of the CPUs that a thread (0: the calling one) may run on, sorted. Empty if there is
// no such thread.
std::vector<int> cpus_of_thread(int thread);
inline std::vector<int> cpus_of_this_thread() { return cpus_of_thread(0); }

// Returns false if the kernel refuses (the cgroup lost the CPUs): the thread then stays where it
// was.
bool bind_thread(int thread, std::span<const int> cpus);

// New pages of the calling thread come from this node if it has any left. Preferred, not bound: a
// bound node can be full while others are empty. Does nothing on machines without nodes.
void prefer_node(int node);

}  // namespace atl::runtime
