// The source of chunks for the pools of a node: small ones are cut from placed slabs, large ones
// are separate mappings.
//
// Freed small pieces are kept by size and reused. Pools return chunks when a thread ends, and
// request the same few sizes again and again, so fragmentation loses nothing.
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

// Larger chunks are mapped separately and returned, which costs some microseconds.
inline constexpr std::size_t kLargestPooled = std::size_t{32} << 10;

class Chunks final : public std::pmr::memory_resource {
 public:
  // Takes the first slab, so that it throws RuntimeFault here if a node has no memory for us.
  Chunks(PagePolicy& policy, Layout layout);

 private:
  // Throws std::bad_alloc if memory runs out. Thread-safe.
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
