// Approaches that follow a rule without measuring whether it pays.
//
// ARCAS names location-centric and cache-size-centric (section 4.1). The static approaches are for
// comparisons: they decide once.
#pragma once

#include <optional>
#include <string>

#include "atoll/runtime/controller.hpp"

namespace atl::runtime {

// The fewest chiplets with room for the threads, at every interval: it spreads only when they no
// longer fit, and returns when they fit again.
class LocationCentric final : public Approach {
 public:
  std::string name() const override { return "location-centric"; }

 protected:
  Decision decide(const Sample& sample) override;
};

// The fewest chiplets whose L3 caches together hold the working set, as given or measured; does not
// move if the working set or the size of an L3 is unknown.
class CacheSizeCentric final : public Approach {
 public:
  std::string name() const override { return "cache-size-centric"; }
  bool wants_working_set() const override { return true; }
  int begin(const Sample& sample) const override { return choose(sample).spread; }

 protected:
  Decision decide(const Sample& sample) override { return choose(sample); }

 private:
  static Decision choose(const Sample& sample);
};

// The fewest chiplets at the first interval, kept from then on.
class StaticLocal final : public Approach {
 public:
  std::string name() const override { return "static-local"; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  std::optional<int> spread_;
};

// The most chiplets at the first interval, kept from then on.
class StaticDistributed final : public Approach {
 public:
  std::string name() const override { return "static-distributed"; }
  int begin(const Sample& sample) const override { return sample.max_spread; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  std::optional<int> spread_;
};

// A given number of chiplets.
class StaticSpread final : public Approach {
 public:
  explicit StaticSpread(int spread) : spread_(spread) {}
  std::string name() const override { return "static:" + std::to_string(spread_); }
  int begin(const Sample&) const override { return spread_; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  int spread_;
};

}  // namespace atl::runtime
