// What `make perf-tuning` compares in W4: an index that is built, then asked for many keys.
//
// Each of ours and of their peers is a Subject of its own, in the same program: the rows, the loops
// and the sums are the same for all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "join.hpp"
#include "rows.hpp"

namespace atl::perf {

using workloads::Joined;
using workloads::Record;

class Subject {
 public:
  virtual ~Subject() = default;
  virtual void build(std::span<const Record> rows) = 0;
  // One key after the other, unless the subject's name says something else.
  [[nodiscard]] virtual Joined look_up(std::span<const Record> probes) = 0;
};

// By their names.
using Make = std::unique_ptr<Subject> (*)();
inline std::map<std::string_view, Make>& subjects() {
  static std::map<std::string_view, Make> all;
  return all;
}

template <class S>
struct Registered {
  explicit Registered(std::string_view name) {
    subjects().emplace(name, [] { return std::unique_ptr<Subject>(new S()); });
  }
};

// A subject from an index with insert(key, value) and get(key), an optional value.
template <class I>
class OneByOne : public Subject {
 public:
  void build(std::span<const Record> rows) override {
    for (const Record& row : rows) index_.insert(row.key, row.value);
  }
  [[nodiscard]] Joined look_up(std::span<const Record> probes) override {
    Joined sums;
    for (const Record& row : probes) {
      if (const std::optional<std::int64_t> value = index_.get(row.key)) {
        sums.add({row.key, *value}, row);
      }
    }
    return sums;
  }

 private:
  I index_;
};

}  // namespace atl::perf
