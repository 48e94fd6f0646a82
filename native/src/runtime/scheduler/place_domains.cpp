#include "place_domains.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace atl::runtime {

PlaceDomains::PlaceDomains(Domains& domains, const Seats& seats)
    : domains_(domains),
      seats_(seats),
      first_chiplet_(kFirstWorker + static_cast<std::size_t>(seats.size())),
      first_node_(first_chiplet_ + static_cast<std::size_t>(seats.places.chiplets())) {
  for (int rank = 0; rank < seats.size(); ++rank) domains_.set_members(domains_.add(), {&rank, 1});
  for (int chiplet = 0; chiplet < seats.places.chiplets(); ++chiplet) domains_.add();
  for (std::size_t node = 0; node < seats.nodes.size(); ++node) domains_.add();
  follow_seats();
}

void PlaceDomains::follow_seats() {
  const Places& places = seats_.places;
  const std::vector<int>& nodes = seats_.nodes;
  std::vector<std::vector<int>> on_chiplet(static_cast<std::size_t>(places.chiplets()));
  std::vector<std::vector<int>> on_node(nodes.size());
  int rank = 0;
  for (const int index : seats_.cores()) {
    const Core& core = places.cores[static_cast<std::size_t>(index)];
    on_chiplet[static_cast<std::size_t>(core.chiplet)].push_back(rank);
    const auto node = std::ranges::lower_bound(nodes, core.node) - nodes.begin();
    on_node[static_cast<std::size_t>(node)].push_back(rank);
    ++rank;
  }
  for (std::size_t at = 0; at < on_chiplet.size(); ++at) {
    domains_.set_members(first_chiplet_ + at, on_chiplet[at]);
  }
  for (std::size_t at = 0; at < on_node.size(); ++at) {
    domains_.set_members(first_node_ + at, on_node[at]);
  }
}

// The index contains the group's number, so that no other runtime and no later group of the same
// domain takes it for its own.
std::size_t PlaceDomains::add_group() {
  constexpr unsigned kMostGroups = 0x7fff;  // an int has room for these, from 1, next to a domain
  static std::atomic<unsigned> groups{0};
  const unsigned before = groups.fetch_add(1, std::memory_order_relaxed);
  return domains_.add(static_cast<int>(1 + before % kMostGroups));
}

Place PlaceDomains::place_of_group(std::size_t domain) const {
  return {Place::Kind::group,
          domains_.group_of(domain) * static_cast<int>(Domains::kMost) + static_cast<int>(domain)};
}

Word PlaceDomains::tag_of(Place place) const {
  const auto fault = [&](const std::string& what, const std::string& range) -> Word {
    throw RuntimeFault("there is no " + what + " " + std::to_string(place.index) +
                       " in this runtime: " + range);
  };
  const auto shifted = [](std::size_t number) { return Word{number} << detail::kDomainShift; };
  switch (place.kind) {
    case Place::Kind::anywhere: return 0;
    case Place::Kind::worker:
      if (place.index < 0 || place.index >= seats_.size()) {
        return fault("worker", "it has " + std::to_string(seats_.size()) + ", from 0");
      }
      return shifted(kFirstWorker + static_cast<std::size_t>(place.index));
    case Place::Kind::core: {
      const int rank = seats_.worker_on(place.index);
      if (rank < 0) return fault("worker on core", "see Runtime::cores()");
      return shifted(kFirstWorker + static_cast<std::size_t>(rank));
    }
    case Place::Kind::chiplet:
      if (place.index < 0 || place.index >= seats_.places.chiplets()) {
        return fault("chiplet", "it has " + std::to_string(seats_.places.chiplets()) + ", from 0");
      }
      return shifted(first_chiplet_ + static_cast<std::size_t>(place.index));
    case Place::Kind::node: {
      const std::vector<int>& nodes = seats_.nodes;
      const auto at = std::ranges::lower_bound(nodes, place.index);
      if (at == nodes.end() || *at != place.index) return fault("node", "see Places::nodes()");
      return shifted(first_node_ + static_cast<std::size_t>(at - nodes.begin()));
    }
    case Place::Kind::group: {
      const std::size_t domain = static_cast<std::size_t>(place.index) % Domains::kMost;
      if (domains_.group_of(domain) == 0 || place_of_group(domain).index != place.index) {
        throw RuntimeFault(
            "the place of a group that is of another runtime or destroyed: give it to its own "
            "Runtime's spawn while the Group exists");
      }
      return shifted(domain);
    }
  }
  __builtin_unreachable();
}

}  // namespace atl::runtime
