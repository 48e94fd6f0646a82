#include "pus.hpp"

#include <charconv>
#include <tuple>

namespace atl::topology {

std::string to_list(const Pus& pus) {
  std::string text;
  for (std::size_t first = 0; first < pus.size();) {
    std::size_t last = first;
    while (last + 1 < pus.size() && pus[last + 1] == pus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(pus[first]);
    if (last > first) text += '-' + std::to_string(pus[last]);
    first = last + 1;
  }
  return text;
}

bool from_list(const std::string& text, Pus& pus) {
  constexpr int most_cpus = 1 << 20;
  const char* at = text.data();
  const char* end = at + text.size();
  while (end > at && (end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\0')) --end;
  while (at < end) {
    int first = 0;
    auto [after_first, fault] = std::from_chars(at, end, first);
    if (fault != std::errc{} || first < 0) return false;
    int last = first;
    at = after_first;
    if (at < end && *at == '-') {
      auto [after_last, last_fault] = std::from_chars(at + 1, end, last);
      if (last_fault != std::errc{} || last < first) return false;
      at = after_last;
    }
    if (last >= most_cpus) return false;
    for (int pu = first; pu <= last; ++pu) pus.push_back(pu);
    if (at < end && *at++ != ',') return false;
  }
  std::sort(pus.begin(), pus.end());
  pus.erase(std::unique(pus.begin(), pus.end()), pus.end());
  return true;
}

namespace {

// If several nodes include a CPU, the node with the lowest rank serves it.
auto rank(const NumaNode& node) {
  const bool special = !node.subtype.empty() && node.subtype != "DRAM";
  return std::tuple(node.pus.size(), special, node.os_index);
}

}  // namespace

MaybeIndex local_node(const std::vector<NumaNode>& nodes, const Pus& pus) {
  const NumaNode* best = nullptr;
  for (const NumaNode& node : nodes) {
    if (!intersects(node.pus, pus)) continue;
    if (!contains(node.pus, pus)) return std::nullopt;
    if (best == nullptr || rank(node) < rank(*best)) best = &node;
  }
  if (best == nullptr) return std::nullopt;
  return best->os_index;
}

void part_cpus(std::vector<NumaNode>& nodes) {
  const std::vector<NumaNode> whole = nodes;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const NumaNode& other : whole) {
      if (!(rank(other) < rank(whole[node]))) continue;
      Pus rest;
      std::set_difference(nodes[node].pus.begin(), nodes[node].pus.end(), other.pus.begin(),
                          other.pus.end(), std::back_inserter(rest));
      nodes[node].pus = std::move(rest);
    }
  }
}

}  // namespace atl::topology
