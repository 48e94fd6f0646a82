// The skip list of libcds without removal, which spares it hazard pointers.
#include <cds/gc/nogc.h>
// After its collector.
#include <cds/container/skip_list_map_nogc.h>

#include <functional>

#include "subject.hpp"

namespace atl::perf {
namespace {

struct Traits : cds::container::skip_list::traits {
  using less = std::less<std::int64_t>;
};

class CdsSkipList {
 public:
  void insert(std::int64_t key, std::int64_t value) { map_.insert(key, value); }
  [[nodiscard]] std::optional<std::int64_t> get(std::int64_t key) {
    const auto found = map_.contains(key);
    return found == map_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  cds::container::SkipListMap<cds::gc::nogc, std::int64_t, std::int64_t, Traits> map_;
};

const Registered<OneByOne<CdsSkipList>> kCds("libcds");

}  // namespace
}  // namespace atl::perf
