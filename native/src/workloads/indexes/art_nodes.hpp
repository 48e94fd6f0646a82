// The four kinds of nodes of the adaptive radix tree (art.hpp).
//
// A slot is a word: 0 for nothing, a node with its kind in the two lowest bits, or in the nodes of
// the last byte a value with the highest bit set. The kind is in the word so that the line of the
// slot that a lookup needs can be asked for before the node is there.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "indexes/optimistic_lock.hpp"

namespace atl::workloads::art {

using Word = std::uint64_t;
using Slot = Field<Word>;

enum class Kind { k4, k16, k48, k256 };

// The bytes that all keys below a node have in common, 0 to 7 from the highest of a word on, and in
// the word's lowest byte how many.
class Prefix {
 public:
  explicit Prefix(Word word = 0) : word_(word) {}
  // The first `bytes` of `rest`.
  Prefix(Word rest, unsigned bytes) : word_((rest & mask(bytes)) | bytes) {}
  [[nodiscard]] unsigned bytes() const { return word_ & 7; }
  [[nodiscard]] Word word() const { return word_; }
  // How many bytes `rest` has in common with it.
  [[nodiscard]] unsigned common(Word rest) const {
    const Word differences = (rest ^ word_) & mask(bytes());
    return differences == 0 ? bytes() : static_cast<unsigned>(std::countl_zero(differences)) / 8;
  }
  [[nodiscard]] bool matches(Word rest) const { return ((rest ^ word_) & mask(bytes())) == 0; }

 private:
  static Word mask(unsigned bytes) { return ~(~Word{0} >> (8 * bytes)); }
  Word word_;
};

struct Node {
  explicit Node(Prefix common) : prefix(common.word()) {}
  OptimisticLock lock;
  Slot prefix;
  Field<std::uint32_t> count;  // of the slots in use
};

// Where `byte` is among the first `count` of eight bytes; 8: nowhere. A byte is zero after the
// exclusive or where it is the wanted one; the lowest such byte is found exactly (Warren, "Hacker's
// Delight", section 6-1).
inline unsigned place_of(Word bytes, std::uint8_t byte) {
  constexpr Word kOnes = 0x0101010101010101;
  const Word differences = bytes ^ (kOnes * byte);
  return static_cast<unsigned>(
             std::countr_zero((differences - kOnes) & ~differences & (kOnes << 7))) /
         8;
}

// Up to 8 * kWords bytes in the order of their coming, each with a slot.
template <std::size_t kSlots>
struct Listed : Node {
  static constexpr std::size_t kMost = kSlots;
  using Node::Node;

  // nullptr: there is none.
  Slot* find(std::uint8_t byte) {
    const std::uint32_t all = count.load();
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const std::size_t place = 8 * at + place_of(bytes[at].load(), byte);
      // Bytes that are not in use are zero, and come last.
      if (place < 8 * at + 8) return place < all ? &slots[place] : nullptr;
    }
    return nullptr;
  }

  void add(std::uint8_t byte, Word slot) {
    const std::uint32_t at = count.load();
    slots[at].store(slot);
    bytes[at / 8].store(bytes[at / 8].load() | Word{byte} << (at % 8 * 8));
    count.store(at + 1);
  }

  template <class Each>
  void each(Each&& each) const {
    for (std::uint32_t at = 0; at < count.load(); ++at) {
      each(static_cast<std::uint8_t>(bytes[at / 8].load() >> (at % 8 * 8)), slots[at].load());
    }
  }

  std::array<Slot, (kSlots + 7) / 8> bytes;
  std::array<Slot, kSlots> slots;
};
using Node4 = Listed<4>;
using Node16 = Listed<16>;

// For each byte where its slot is.
struct Node48 : Node {
  static constexpr std::size_t kMost = 48;
  using Node::Node;

  Slot* find(std::uint8_t byte) {
    const std::uint8_t place = places[byte].load();
    return place == 0 ? nullptr : &slots[place - 1U];
  }

  void add(std::uint8_t byte, Word slot) {
    const std::uint32_t at = count.load();
    slots[at].store(slot);
    places[byte].store(static_cast<std::uint8_t>(at + 1));
    count.store(at + 1);
  }

  template <class Each>
  void each(Each&& each) const {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint8_t place = places[byte].load();
      if (place != 0) each(static_cast<std::uint8_t>(byte), slots[place - 1U].load());
    }
  }

  std::array<Field<std::uint8_t>, 256> places;  // plus 1; 0: none
  std::array<Slot, kMost> slots;
};

// A slot for each byte.
struct Node256 : Node {
  static constexpr std::size_t kMost = 256;
  using Node::Node;

  Slot* find(std::uint8_t byte) { return &slots[byte]; }

  void add(std::uint8_t byte, Word slot) {
    slots[byte].store(slot);
    count.store(count.load() + 1);
  }

  template <class Each>
  void each(Each&& each) const {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Word slot = slots[byte].load();
      if (slot != 0) each(static_cast<std::uint8_t>(byte), slot);
    }
  }

  std::array<Slot, kMost> slots;
};

template <class N>
struct LargerThan;
template <>
struct LargerThan<Node4> {
  using Type = Node16;
};
template <>
struct LargerThan<Node16> {
  using Type = Node48;
};
// A node of 256 slots is never full.
template <>
struct LargerThan<Node48> {
  using Type = Node256;
};
template <>
struct LargerThan<Node256> {
  using Type = Node256;
};
template <class N>
using Larger = typename LargerThan<N>::Type;

inline Word word_of(Node4* node) { return reinterpret_cast<Word>(node) | Word(Kind::k4); }
inline Word word_of(Node16* node) { return reinterpret_cast<Word>(node) | Word(Kind::k16); }
inline Word word_of(Node48* node) { return reinterpret_cast<Word>(node) | Word(Kind::k48); }
inline Word word_of(Node256* node) { return reinterpret_cast<Word>(node) | Word(Kind::k256); }

// Calls use(node) with the node of a slot, as what it is.
template <class Use>
decltype(auto) as_it_is(Word slot, Use&& use) {
  const Word address = slot & ~Word{3};
  switch (static_cast<Kind>(slot & 3)) {
    case Kind::k4: return use(*reinterpret_cast<Node4*>(address));
    case Kind::k16: return use(*reinterpret_cast<Node16*>(address));
    case Kind::k48: return use(*reinterpret_cast<Node48*>(address));
    case Kind::k256: break;
  }
  return use(*reinterpret_cast<Node256*>(address));
}

inline Node& node_of(Word slot) { return *reinterpret_cast<Node*>(slot & ~Word{3}); }

}  // namespace atl::workloads::art
