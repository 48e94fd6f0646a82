// What the main functions of several programs have in common.
#pragma once

#include <string>

namespace atl::base {

// The number of CPUs that the calling thread may run on; 1 if the system does not tell.
int allowed_cpus();

// Writes the text to standard output. Throws std::system_error if that fails, such as on a full
// disk.
void print(const std::string& text);

}  // namespace atl::base
