// The answer of a graph kernel as a file, for a check by another program: --save.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// `parameters` and --save.
[[nodiscard]] std::vector<Parameter> with_save(std::vector<Parameter> parameters);

// Before the work. Throws UsageFault if vertices have other names than in the input, and FileFault
// if the file cannot be written.
void check_save(const Settings& settings);

// With --save, a line for each vertex: its number, a blank, and what `append_value` appends.
// Throws FileFault.
void save_answer(const Settings& settings, Vertex vertices,
                 const std::function<void(Vertex, std::string&)>& append_value);

}  // namespace atl::kernels
