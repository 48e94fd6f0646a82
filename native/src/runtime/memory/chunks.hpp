// Where the pools of a node take their chunks from: small ones cut from placed slabs, large ones
// mappings of their own.
//
// Small pieces are kept by size for the next of that size. Pools give chunks back when a thread
// ends, and ask for the same few sizes again and again, so nothing is lost to fragments.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "block.hpp"
#include "page_policy.hpp"

namespace atl::runtime {

// What is larger is mapped on its own and given back, so it is worth some microseconds.
inline constexpr std::size_t kLargestPooled = std::size_t{32} << 10;

class Chunks final : public std::pmr::memory_resource {
 public:
  // Takes the first slab, so that nodes that cannot be had are refused here: RuntimeFault.
  Chunks(PagePolicy& policy, Layout layout);

 private:
  // std::bad_alloc: no memory. Thread-safe.
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override;

  void* small(std::size_t bytes, std::size_t alignment);
  void* large(std::size_t bytes, std::size_t alignment);
  [[nodiscard]] std::unique_ptr<Block> placed(std::size_t bytes) const;

  PagePolicy& policy_;
  Layout layout_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> slabs_;
  std::size_t cut_bytes_ = 0;  // of the last slab
  // By bytes and alignment: the last piece freed, which holds the address of the one before.
  std::map<std::pair<std::size_t, std::size_t>, void*> freed_;
  std::unordered_map<void*, std::unique_ptr<Block>> large_;
};

}  // namespace atl::runtime
