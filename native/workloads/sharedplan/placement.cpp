#include "placement.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "flags.hpp"

namespace atl::sharedplan {
namespace {

using kernels::UsageFault;

int checked(int cpu, const Places& here) {
  if (core_of(here, cpu) != nullptr) return cpu;
  throw UsageFault("the placement uses CPU " + std::to_string(cpu) +
                   ", which this process may not; plan for this machine, or allow the CPU");
}

Placement read(const nlohmann::json& file, std::span<const Spec> plan, const Places& here) {
  Placement made;
  made.deployment = file.at("deployment");
  for (const auto& core : file.at("cores")) made.cpus.push_back(checked(core.at("cpu"), here));
  if (file.at("units").empty()) return made;

  made.cpus.clear();
  made.cpu_of.assign(plan.size(), -1);
  for (const auto& unit : file.at("units")) {
    const int cpu = checked(unit.at("cpu"), here);
    for (const int other : made.cpus) {
      if (other == cpu || core_of(here, other) != core_of(here, cpu)) continue;
      throw UsageFault("the placement uses CPUs " + std::to_string(other) + " and " +
                       std::to_string(cpu) +
                       " of one core, which has one worker; give its operators the same CPU");
    }
    if (std::ranges::find(made.cpus, cpu) == made.cpus.end()) made.cpus.push_back(cpu);
    for (const std::string id : unit.at("operators")) {
      const auto found = std::ranges::find(plan, id, &Spec::id);
      if (found == plan.end()) {
        throw UsageFault("the placement names " + id + ", which is not an operator of the plan");
      }
      int& own = made.cpu_of[static_cast<std::size_t>(found - plan.begin())];
      if (own >= 0 || unit.value("replicas", 1) != 1) {
        throw UsageFault("the placement has " + id + " twice; an operator cannot be divided here");
      }
      own = cpu;
    }
  }
  for (std::size_t at = 0; at < plan.size(); ++at) {
    if (made.cpu_of[at] < 0) throw UsageFault("the placement has no core for " + plan[at].id);
  }
  return made;
}

}  // namespace

const Core* core_of(const Places& here, int cpu) {
  const auto found = std::ranges::find_if(here.cores, [&](const Core& core) {
    return std::ranges::find(core.cpus, cpu) != core.cpus.end();
  });
  return found == here.cores.end() ? nullptr : &*found;
}

Placement parse_placement(const std::string& text, std::span<const Spec> plan, const Places& here) {
  try {
    const nlohmann::json file = nlohmann::json::parse(text);
    if (file.at("format") != "atoll/placement" || file.at("version") != 1) {
      throw UsageFault("not a placement of format atoll/placement 1");
    }
    return read(file, plan, here);
  } catch (const nlohmann::json::exception& fault) {
    throw UsageFault("not a placement of format atoll/placement 1: " + std::string(fault.what()));
  }
}

}  // namespace atl::sharedplan
