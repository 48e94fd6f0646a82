// absl::btree_map. One thread.
#include <absl/container/btree_map.h>

#include "subject.hpp"

namespace atl::perf {
namespace {

class AbslBTree {
 public:
  void insert(std::int64_t key, std::int64_t value) { map_.emplace(key, value); }
  [[nodiscard]] std::optional<std::int64_t> get(std::int64_t key) const {
    const auto found = map_.find(key);
    return found == map_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  absl::btree_map<std::int64_t, std::int64_t> map_;
};

const Registered<OneByOne<AbslBTree>> kAbsl("absl::btree");

}  // namespace
}  // namespace atl::perf
