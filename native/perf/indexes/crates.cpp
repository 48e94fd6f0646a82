// The indexes in Rust (crates/src/lib.rs). Their loops are there, so that no lookup is a call from
// one language to the other.
#include "subject.hpp"

namespace atl::perf {
namespace {

#define ATOLL_PERF_CRATE(Name, prefix, said)                                          \
  extern "C" void* prefix##_new(const Record*, std::size_t);                          \
  extern "C" void prefix##_free(void*);                                               \
  extern "C" void prefix##_look_up(const void*, const Record*, std::size_t, Joined*); \
  class Name : public Subject {                                                       \
   public:                                                                            \
    ~Name() override { prefix##_free(index_); }                                       \
    void build(std::span<const Record> rows) override {                               \
      index_ = prefix##_new(rows.data(), rows.size());                                \
    }                                                                                 \
    [[nodiscard]] Joined look_up(std::span<const Record> probes) override {           \
      Joined sums;                                                                    \
      prefix##_look_up(index_, probes.data(), probes.size(), &sums);                  \
      return sums;                                                                    \
    }                                                                                 \
                                                                                      \
   private:                                                                           \
    void* index_ = nullptr;                                                           \
  };                                                                                  \
  const Registered<Name> k##Name(said)

ATOLL_PERF_CRATE(Congee, perf_congee, "congee");
ATOLL_PERF_CRATE(MasstreeCrate, perf_masstree, "masstree-crate");
ATOLL_PERF_CRATE(CrossbeamSkipList, perf_skiplist, "crossbeam-skiplist");

}  // namespace
}  // namespace atl::perf
