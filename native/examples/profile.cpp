// The profile of workers and code sections, as values, as a file and as a trace.
#include <atoll/runtime.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  // The folder for the two files.
  const std::string folder = count > 1 ? arguments[1] : ".";
  atl::Runtime runtime({.trace_events = 10'000});
  std::vector<double> sums(1000);
  runtime.run([&] {
    atl::parallel_for(0, 1000, [&](int i) {
      atl::Section section("sums of roots");
      double& sum = sums[static_cast<std::size_t>(i)];
      for (int k = 0; k <= i; ++k) sum += std::sqrt(k);
    });
  });

  const atl::Profile profile = runtime.profile();
  std::uint64_t steals = 0;
  for (const atl::WorkerProfile& worker : profile.workers) {
    for (const std::uint64_t at_distance : worker.counts.steals) steals += at_distance;
  }
  for (const std::string& remark : profile.remarks) std::printf("%s\n", remark.c_str());
  for (const atl::SectionProfile& section : atl::section_totals(profile)) {
    std::printf("%s: %g s in %llu entries\n", section.name.c_str(), section.seconds,
                static_cast<unsigned long long>(section.entered));
    if (section.name == "sums of roots" && section.entered != 1000) return 1;
  }
  std::printf("%llu steals\n", static_cast<unsigned long long>(steals));
  atl::write_profile_json(profile, folder + "/profile.json");
  runtime.write_trace(folder + "/trace.json");  // for ui.perfetto.dev
  return atl::section_totals(profile).empty() ? 1 : 0;
}
