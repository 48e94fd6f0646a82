// The bounds of every approach, and the approaches by name.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "adaptive.hpp"
#include "arcas_2025.hpp"
#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/places.hpp"
#include "fixed.hpp"
#include "switchback.hpp"

namespace atl {

Approach::~Approach() = default;

std::vector<int> Approach::map(const Places&, std::span<const int>, int) const { return {}; }

Decision Approach::step(const Sample& sample) {
  const int low = std::max(1, sample.min_spread);
  const int high = std::max(low, sample.max_spread);
  const int bounded = std::clamp(sample.spread, low, high);
  if (bounded != sample.spread) return {bounded, "the bounds have moved"};
  // Written so that a NaN is refused too.
  if (!(sample.elapsed_s > 0 && std::isfinite(sample.elapsed_s)))
    return {bounded, "empty interval"};
  if (sample.min_spread != low || sample.max_spread != high) return {bounded, "bounds that cross"};
  Decision decision = decide(sample);
  decision.spread = std::clamp(decision.spread, low, high);
  return decision;
}

namespace {

// The number after the prefix, from 1 on.
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error != std::errc{} || end != digits.end() || number < 1) return std::nullopt;
  return number;
}

std::unique_ptr<Approach> arcas(std::string_view name) {
  using namespace runtime;
  for (const bool printed : {false, true}) {
    const std::string plain = printed ? "arcas-2025-printed" : "arcas-2025";
    ArcasOptions options{.printed_location = printed};
    if (name != plain) {
      const std::size_t colon = name.find(':', std::min(name.size(), plain.size() + 1));
      const auto rate = number_after(plain + ":", name.substr(0, colon));
      if (!rate) continue;
      options.rmt_chip_access_rate = *rate;
      if (colon != name.npos) {
        const auto timer_ms = number_after(":", name.substr(colon));
        if (!timer_ms) continue;
        options.scheduler_timer_ms = *timer_ms;
      }
    }
    return std::make_unique<Arcas2025>(options);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Approach> approach_by_name(std::string_view name, std::uint64_t seed) {
  using namespace runtime;
  if (name == "adaptive") return std::make_unique<Adaptive>(seed);
  if (name == "cache-size-centric") return std::make_unique<CacheSizeCentric>();
  if (name == "location-centric") return std::make_unique<LocationCentric>();
  if (name == "static-distributed") return std::make_unique<StaticDistributed>();
  if (name == "static-local") return std::make_unique<StaticLocal>();
  if (name == "switchback") return std::make_unique<Switchback>(seed);
  if (const auto spread = number_after("static:", name)) {
    return std::make_unique<StaticSpread>(*spread);
  }
  if (auto found = arcas(name)) return found;
  throw RuntimeFault(
      "no approach is called '" + std::string(name) +
      "'; take adaptive, arcas-2025, arcas-2025-printed, each also with a threshold "
      "(arcas-2025:N, from 1) and a timer (arcas-2025:N:MS), cache-size-centric, location-centric, "
      "static-distributed, static-local, static:K (K chiplets, from 1) or "
      "switchback");
}

}  // namespace atl
