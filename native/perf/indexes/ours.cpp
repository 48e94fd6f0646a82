// The four indexes of W4, one lookup after the other and interleaved.
#include "index_join.hpp"
#include "indexes/art.hpp"
#include "indexes/btree.hpp"
#include "indexes/masstree.hpp"
#include "indexes/skip_list.hpp"
#include "subject.hpp"

namespace atl::perf {
namespace {

template <workloads::Index I, bool kInterleaved>
class Ours : public Subject {
 public:
  void build(std::span<const Record> rows) override {
    for (const Record& row : rows) index_.insert(row.key, row.value);
    index_.settle();
  }
  [[nodiscard]] Joined look_up(std::span<const Record> probes) override {
    Joined sums;
    const auto add = [&](std::int64_t value, const Record& row) {
      sums.add({row.key, value}, row);
    };
    if constexpr (kInterleaved) {
      workloads::look_up_interleaved(index_, probes, add);
    } else {
      workloads::look_up(index_, probes, add);
    }
    return sums;
  }

 private:
  I index_;
};

const Registered<Ours<workloads::Art, false>> kArt("art");
const Registered<Ours<workloads::Art, true>> kArtFast("art-fast");
const Registered<Ours<workloads::Masstree, false>> kMasstree("masstree");
const Registered<Ours<workloads::Masstree, true>> kMasstreeFast("masstree-fast");
const Registered<Ours<workloads::BTree, false>> kBTree("btree");
const Registered<Ours<workloads::BTree, true>> kBTreeFast("btree-fast");
const Registered<Ours<workloads::SkipList, false>> kSkipList("skiplist");
const Registered<Ours<workloads::SkipList, true>> kSkipListFast("skiplist-fast");

}  // namespace
}  // namespace atl::perf
