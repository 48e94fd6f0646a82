// The domains of a team's places: one for each worker, each chiplet and each node. A group of the
// user has a domain that the group adds itself.
#pragma once

#include <cstddef>
#include <span>

#include "atoll/runtime/places.hpp"
#include "domain.hpp"
#include "seats.hpp"

namespace atl::runtime {

class PlaceDomains {
 public:
  // Adds the domains to `domains`.
  PlaceDomains(Domains& domains, const Seats& seats);

  // The queue of tasks that only this worker may run.
  Domain& of_worker(int rank) const {
    return domains_[kFirstWorker + static_cast<std::size_t>(rank)];
  }
  // The only worker that may run the word, or -1 if it is not of such a domain.
  int only_worker(Word word) const {
    const auto number = static_cast<std::size_t>(word >> detail::kDomainShift);
    return number >= kFirstWorker && number < first_chiplet_
               ? static_cast<int>(number - kFirstWorker)
               : -1;
  }
  // Makes those workers members that sit there now.
  void follow_seats();

  // The number of a place's domain, shifted as in a task's word. Throws RuntimeFault if the place
  // does not exist. The place of a destroyed group does not, until the process has made 32,767 more
  // groups and one of them has its domain.
  Word tag_of(Place place) const;
  // The number of a domain for a new group, to be dropped with it.
  std::size_t add_group();
  Place place_of_group(std::size_t domain) const;

 private:
  static constexpr std::size_t kFirstWorker = 1;  // domain 0 has all workers

  Domains& domains_;
  const Seats& seats_;
  const std::size_t first_chiplet_, first_node_;
};

}  // namespace atl::runtime
