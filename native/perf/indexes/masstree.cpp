// masstree-beta, the authors' own. Its key is 8 bytes, the highest first, as W4's is one slice.
#include "config.h"
// After its configuration.
#include "kvthread.hh"
#include "masstree.hh"
#include "masstree_insert.hh"
#include "masstree_remove.hh"
#include "masstree_tcursor.hh"
#include "subject.hpp"

// What its programs define.
relaxed_atomic<mrcu_epoch_type> globalepoch(1);
relaxed_atomic<mrcu_epoch_type> active_epoch(1);
kvtimestamp_t initial_timestamp = 1;

namespace atl::perf {
namespace {

struct Parameters : Masstree::nodeparams<15, 15> {
  using value_type = std::uint64_t;
  using value_print_type = Masstree::value_print<value_type>;
  using threadinfo_type = threadinfo;
};

class MasstreeBeta {
  using Table = Masstree::basic_table<Parameters>;

 public:
  MasstreeBeta() : thread_(threadinfo::make(threadinfo::TI_MAIN, -1)) {
    table_.initialize(*thread_);
  }
  void insert(std::int64_t key, std::int64_t value) {
    const std::uint64_t bytes = __builtin_bswap64(static_cast<std::uint64_t>(key));
    Table::cursor_type cursor(table_, lcdf::Str(reinterpret_cast<const char*>(&bytes), 8));
    cursor.find_insert(*thread_);
    cursor.value() = static_cast<std::uint64_t>(value);
    fence();
    cursor.finish(1, *thread_);
  }
  [[nodiscard]] std::optional<std::int64_t> get(std::int64_t key) const {
    const std::uint64_t bytes = __builtin_bswap64(static_cast<std::uint64_t>(key));
    std::uint64_t value = 0;
    if (!table_.get(lcdf::Str(reinterpret_cast<const char*>(&bytes), 8), value, *thread_)) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
  }

 private:
  threadinfo* thread_;
  Table table_;
};

const Registered<OneByOne<MasstreeBeta>> kMasstree("masstree-beta");

}  // namespace
}  // namespace atl::perf
