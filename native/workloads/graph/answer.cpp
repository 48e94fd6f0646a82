#include "graph/answer.hpp"

#include "base/whole_file.hpp"

namespace atl::kernels {
namespace {

constexpr std::size_t kBlock = 1 << 16;

// Empty: nothing is saved.
std::string path_in(const Settings& settings) {
  const auto found = settings.all().find("save");
  return found == settings.all().end() ? "" : found->second;
}

}  // namespace

std::vector<Parameter> with_save(std::vector<Parameter> parameters) {
  parameters.push_back(
      {"save", "", "write the last run's answer to this file: a vertex in a line"});
  return parameters;
}

void check_save(const Settings& settings) {
  if (path_in(settings).empty()) return;
  if (settings.text("relabel") == "yes") {
    throw UsageFault("--save, --relabel yes: its vertices have new numbers; leave one of them out");
  }
  const base::WholeFile trial(path_in(settings));
}

void save_answer(const Settings& settings, Vertex vertices,
                 const std::function<void(Vertex, std::string&)>& append_value) {
  if (path_in(settings).empty()) return;
  base::WholeFile file(path_in(settings));
  std::string block;
  for (Vertex v = 0; v < vertices; ++v) {
    block += std::to_string(v) + ' ';
    append_value(v, block);
    block += '\n';
    if (block.size() < kBlock) continue;
    file.write(block);
    block.clear();
  }
  file.write(block);
  file.commit();
}

}  // namespace atl::kernels
