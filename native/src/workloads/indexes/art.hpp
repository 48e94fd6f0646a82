// The adaptive radix tree: a key's bytes are its path, and a node has as much room as it needs.
//
// Sources: Leis et al., "The Adaptive Radix Tree: ARTful Indexing for Main-Memory Databases", ICDE
// 2013, for the tree; the same, "The ART of Practical Synchronization", DaMoN 2016, for many
// threads, which is what numa-query-tuning runs.
//
// Shape:  a level for each byte of the key, the highest first, with its sign turned so that bytes
//         sort as keys do. A node has 4, 16, 48 or 256 slots (art_nodes.hpp) and is replaced by the
//         next larger kind when it is full. Levels with one way to go are left out: the node below
//         has their bytes as its prefix. Keys have 8 bytes, so the slots of the last byte hold the
//         values themselves, and no key needs to be compared.
// Time:   at most 8 nodes, whatever n is. A million dense keys have 4 levels.
// Memory: 9 bytes a key where keys are dense, in nodes of 256; up to 80 for keys far apart, each of
//         which ends in a node of 4 of its own. Nodes have 64, 168, 664 and 2,072 bytes.
//
// A node that was replaced may still be read, by lookups that will find that its version is no
// longer what it was. It is kept until settle(), in a list through its prefix.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "indexes/art_nodes.hpp"

namespace atl::workloads {

class Art {
  using Word = art::Word;
  using Slot = art::Slot;

 public:
  struct Lookup {
    std::int64_t key;
    Word rest;                    // the bytes that are still to be looked at, from the highest on
    unsigned left;                // how many
    Word slot;                    // where it goes on
    const OptimisticLock* above;  // the lock of that slot, and its version
    std::uint64_t above_version;
    std::optional<std::int64_t> found;
  };

  Art() = default;
  Art(const Art&) = delete;
  Art& operator=(const Art&) = delete;
  ~Art() {
    settle();
    if (root_.load() != 0) destroy(root_.load(), kBytes);
  }

  bool insert(std::int64_t key, std::int64_t value) {
    for (;;) {
      if (const std::optional<bool> done = try_insert(ordered(key), value)) return *done;
    }
  }

  [[nodiscard]] Lookup begin(std::int64_t key) const {
    const std::uint64_t version = lock_.read();
    return {key, ordered(key), kBytes, root_.load(), &lock_, version, std::nullopt};
  }

  [[gnu::always_inline]] bool step(Lookup& lookup) const {
    if (lookup.slot == 0) return lookup.above->still(lookup.above_version) || again(lookup);
    const art::Node& node = art::node_of(lookup.slot);
    const std::uint64_t version = node.lock.read();
    if (!lookup.above->still(lookup.above_version)) return again(lookup);
    const art::Prefix prefix(node.prefix.load());
    if (!prefix.matches(lookup.rest)) return node.lock.still(version) || again(lookup);
    const Word rest = lookup.rest << (8 * prefix.bytes());
    const Word next = at(lookup.slot, static_cast<std::uint8_t>(rest >> 56));
    if (!node.lock.still(version)) return again(lookup);
    if (next == 0) return true;
    lookup.rest = rest << 8;
    lookup.left -= prefix.bytes() + 1;
    if (lookup.left == 0) {
      lookup.found = static_cast<std::int64_t>(next & ~kValue);
      return true;
    }
    lookup.slot = next;
    lookup.above = &node.lock;
    lookup.above_version = version;
    return false;
  }

  // The lines that a node without a prefix is read in.
  void prefetch(const Lookup& lookup) const {
    const art::Node& node = art::node_of(lookup.slot);
    const auto byte = static_cast<std::uint8_t>(lookup.rest >> 56);
    __builtin_prefetch(&node);
    switch (static_cast<art::Kind>(lookup.slot & 3)) {
      case art::Kind::k4:
      case art::Kind::k16: break;
      case art::Kind::k48:
        __builtin_prefetch(&static_cast<const art::Node48&>(node).places[byte]);
        break;
      case art::Kind::k256:
        __builtin_prefetch(&static_cast<const art::Node256&>(node).slots[byte]);
        break;
    }
  }

  void settle() {
    // Relaxed: nobody else is here.
    Word retired = retired_.exchange(0, std::memory_order_relaxed);
    while (retired != 0) {
      const Word next = art::node_of(retired).prefix.load();
      art::as_it_is(retired, [](auto& node) { delete &node; });
      retired = next;
    }
  }

 private:
  static constexpr unsigned kBytes = 8;
  static constexpr Word kValue = Word{1} << 63;

  static Word ordered(std::int64_t key) { return static_cast<Word>(key) ^ (Word{1} << 63); }

  static Word at(Word slot, std::uint8_t byte) {
    return art::as_it_is(slot, [&](auto& node) -> Word {
      const Slot* const found = node.find(byte);
      return found == nullptr ? 0 : found->load();
    });
  }

  bool again(Lookup& lookup) const {
    lookup = begin(lookup.key);
    return false;
  }

  // A way to a value by `left` bytes: the value itself, or a node with all bytes but the last as
  // its prefix.
  static Word path_to(std::int64_t value, Word rest, unsigned left) {
    const Word last = static_cast<Word>(value) | kValue;
    if (left == 0) return last;
    auto* const node = new art::Node4(art::Prefix(rest, left - 1));
    node->add(static_cast<std::uint8_t>(rest >> (8 * (kBytes - left))), last);
    return art::word_of(node);
  }

  // nullopt: something has changed on the way.
  std::optional<bool> try_insert(Word rest, std::int64_t value) {
    OptimisticLock* above = &lock_;
    std::uint64_t above_version = lock_.read();
    unsigned left = kBytes;
    Slot* link = &root_;
    for (Word slot = link->load();;) {
      if (slot == 0) {
        const Exclusive upper(*above, above_version);
        if (!upper) return std::nullopt;
        link->store(path_to(value, rest, left));
        return true;
      }
      art::Node& node = art::node_of(slot);
      const std::uint64_t version = node.lock.read();
      if (!above->still(above_version)) return std::nullopt;
      const art::Prefix prefix(node.prefix.load());
      const unsigned common = prefix.common(rest);
      if (common < prefix.bytes()) {
        const Exclusive upper(*above, above_version);
        const Exclusive own(node.lock, version);
        if (!upper || !own) return std::nullopt;
        fork(*link, slot, common, rest, left, value);
        return true;
      }
      rest <<= 8 * prefix.bytes();
      const auto byte = static_cast<std::uint8_t>(rest >> 56);
      rest <<= 8;
      left -= prefix.bytes() + 1;
      Slot* const place = art::as_it_is(slot, [&](auto& kind) { return kind.find(byte); });
      const Word next = place == nullptr ? 0 : place->load();
      if (!node.lock.still(version)) return std::nullopt;
      if (next != 0 && left == 0) return false;
      if (next == 0) {
        return art::as_it_is(slot, [&](auto& kind) -> std::optional<bool> {
          if (kind.count.load() < kind.kMost) {
            const Exclusive own(kind.lock, version);
            if (!own) return std::nullopt;
            kind.add(byte, path_to(value, rest, left));
            return true;
          }
          const Exclusive upper(*above, above_version);
          const Exclusive own(kind.lock, version);
          if (!upper || !own) return std::nullopt;
          link->store(grown(kind, byte, rest, left, value));
          retire(slot);
          return true;
        });
      }
      above = &node.lock;
      above_version = version;
      link = place;
      slot = next;
    }
  }

  // A node in front of another whose prefix has only `common` bytes in common with the key. What
  // can throw comes before what changes.
  static void fork(Slot& link, Word slot, unsigned common, Word rest, unsigned left,
                   std::int64_t value) {
    auto upper = std::make_unique<art::Node4>(art::Prefix(rest, common));
    const unsigned shift = 8 * (common + 1);  // at most 56: a prefix has at most 7 bytes
    const auto byte_of = [&](Word bytes) {
      return static_cast<std::uint8_t>(bytes >> (64 - shift));
    };
    const Word path = path_to(value, rest << shift, left - common - 1);
    art::Node& node = art::node_of(slot);
    const art::Prefix prefix(node.prefix.load());
    upper->add(byte_of(rest), path);
    upper->add(byte_of(prefix.word()), slot);
    node.prefix.store(art::Prefix(prefix.word() << shift, prefix.bytes() - common - 1).word());
    link.store(art::word_of(upper.release()));
  }

  // The next larger node, with one slot more.
  template <class Full>
  static Word grown(const Full& full, std::uint8_t byte, Word rest, unsigned left,
                    std::int64_t value) {
    auto larger = std::make_unique<art::Larger<Full>>(art::Prefix(full.prefix.load()));
    full.each([&](std::uint8_t other, Word slot) { larger->add(other, slot); });
    larger->add(byte, path_to(value, rest, left));
    return art::word_of(larger.release());
  }

  void retire(Word slot) {
    Slot& next = art::node_of(slot).prefix;
    // Relaxed: settle() comes after all insertions.
    Word first = retired_.load(std::memory_order_relaxed);
    do {
      next.store(first);
    } while (!retired_.compare_exchange_weak(first, slot, std::memory_order_relaxed));
  }

  static void destroy(Word slot, unsigned left) {
    art::as_it_is(slot, [&](auto& node) {
      const unsigned below = left - art::Prefix(node.prefix.load()).bytes() - 1;
      node.each([&](std::uint8_t, Word next) {
        if (below > 0) destroy(next, below);
      });
      delete &node;
    });
  }

  mutable OptimisticLock lock_;  // of root_
  Slot root_;
  std::atomic<Word> retired_{0};
};

}  // namespace atl::workloads
