#include "chase.hpp"

#include "chase_walker.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {

Json chase(const Request& request) {
  const Limits limits = request.limits();
  Walker walker(request.bytes("bytes"), request.null_run());
  Team team({request.cpu("cpu")}, limits.budget_ns, walker.bytes());
  const Memory memory(walker.bytes(), request.node(), request.flag("huge", false));
  Json answer;
  team.run([&](std::size_t) {
    walker.prepare(memory.data());
    Samples samples(limits);
    while (!samples.done()) {
      team.check();
      samples.add(walker.sample());
    }
    walker.verify();
    answer["load_ns"] = samples.values();
  });
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
