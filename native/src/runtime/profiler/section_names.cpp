#include "section_names.hpp"

#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/process.hpp"

namespace atl::runtime {

namespace {

struct Names {
  std::mutex mutex;
  std::vector<std::string> by_id;
};

// Never destroyed: static objects may profile in their destructors.
Names& names() {
  static auto* const names = [] {
    auto made = std::make_unique<Names>();
    hold_over_fork(made->mutex);
    return made.release();
  }();
  return *names;
}

}  // namespace

int section_id(std::string_view name) {
  Names& all = names();
  const std::scoped_lock lock(all.mutex);
  for (std::size_t i = 0; i < all.by_id.size(); ++i) {
    if (all.by_id[i] == name) return static_cast<int>(i);
  }
  if (all.by_id.size() == kOtherSections) return kOtherSections;
  all.by_id.emplace_back(name);
  return static_cast<int>(all.by_id.size()) - 1;
}

std::string section_name(int id) {
  if (id == kOtherSections) return "(others)";
  Names& all = names();
  const std::scoped_lock lock(all.mutex);
  return all.by_id.at(static_cast<std::size_t>(id));
}

}  // namespace atl::runtime
