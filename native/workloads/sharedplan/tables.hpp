// The data: tables in the manner of TPC-W's bookshop, made from a seed and a scale, by column.
//
// Every value is 32 bits. Texts are coded so that the order of codes is that of the texts: a word
// has two syllables of 32, a title three words. All keys are dense from 1, so row = key - 1.
// Numbers of rows are TPC-W's (clause 4.3) for 4,000 emulated browsers and 100,000 items at scale
// 1, which that specification puts at about 20 GB; here they take 1.4 GiB.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/array.hpp"

namespace atl::sharedplan {

enum class Type : std::uint8_t { kNumber, kWord, kTitle };

inline constexpr std::uint32_t kWords = 1024;
inline constexpr std::uint32_t kSubjects = 24;

[[nodiscard]] std::string text_of(Type type, std::uint32_t value);

struct Column {
  std::string name;
  Type type;
  Array<std::uint32_t> values;
};

struct Table {
  std::string name;
  std::uint32_t rows;
  std::vector<Column> columns;

  // Throws std::logic_error if there is no such column.
  [[nodiscard]] const Column& column(std::string_view name) const;
};

class Tables {
 public:
  // Memory for the 32-bit values of a column of the named table.
  using Memory = std::function<Array<std::uint32_t>(const std::string& table, std::size_t rows)>;

  Tables(double scale, std::uint64_t seed, const Memory& memory);

  // Throws std::logic_error if there is no such table.
  [[nodiscard]] const Table& operator[](std::string_view name) const;
  [[nodiscard]] const std::vector<Table>& all() const { return tables_; }

  [[nodiscard]] static std::uint64_t bytes(double scale);

 private:
  std::vector<Table> tables_;
};

// A number that looks random, the same for the same arguments.
[[nodiscard]] std::uint64_t mixed(std::uint64_t seed, std::uint64_t number);

}  // namespace atl::sharedplan
