// A profile as JSON: atoll/runtime-profile 1. The records of src/atoll/schema/runtime_profile.py
// refuse unknown fields, so a field added here must be added there.
#include <algorithm>
#include <map>

#include "atoll/runtime/profile.hpp"
#include "group_read.hpp"
#include "json_writer.hpp"
#include "write_whole.hpp"

namespace atl {

namespace {

using runtime::JsonWriter;

void write_counts(JsonWriter& json, const Counts& counts) {
  json.key("counts");
  json.open_object();
  for_each_count([&](const char* name, std::uint64_t count) { json.field(name, count); }, counts);
  json.close_object();
}

void write_fills(JsonWriter& json, const FillCounts& fills) {
  json.key("fills");
  json.open_object();
  for (std::size_t i = 0; i < kFillSources; ++i) {
    json.field(fill_source_name(static_cast<FillSource>(i)), fills.by_source[i]);
  }
  json.field("running_share", fills.running_share);
  json.close_object();
}

void write_usage(JsonWriter& json, const ThreadUsage& usage) {
  json.key("usage");
  json.open_object();
  json.field("cpu_s", usage.cpu_s);
  json.field("run_delay_s", usage.run_delay_s);
  json.field("minor_faults", usage.minor_faults);
  json.field("major_faults", usage.major_faults);
  json.field("voluntary_switches", usage.voluntary_switches);
  json.field("involuntary_switches", usage.involuntary_switches);
  json.field("cpu_migrations", usage.cpu_migrations);
  json.close_object();
}

void write_section(JsonWriter& json, const SectionProfile& section) {
  json.open_object();
  json.field("name", section.name);
  json.field("entered", section.entered);
  json.field("seconds", section.seconds);
  write_counts(json, section.counts);
  json.field("fills_s", section.fills_s);
  write_fills(json, section.fills);
  json.close_object();
}

void write_type(JsonWriter& json, const TypeProfile& type) {
  json.open_object();
  json.field("type", type.type);
  json.field("fills_s", type.fills_s);
  write_fills(json, type.fills);
  json.close_object();
}

void write_worker(JsonWriter& json, const WorkerProfile& worker) {
  json.open_object();
  json.field("worker", worker.worker);
  json.field("tid", worker.tid);
  write_counts(json, worker.counts);
  write_fills(json, worker.fills);
  write_usage(json, worker.usage);
  json.key("sections");
  json.open_array();
  for (const SectionProfile& section : worker.sections) write_section(json, section);
  json.close_array();
  json.key("types");
  json.open_array();
  for (const TypeProfile& type : worker.types) write_type(json, type);
  json.close_array();
  json.field("lost_trace_events", worker.lost_trace_events);
  json.close_object();
}

void write_l3(JsonWriter& json, const L3Profile& l3) {
  json.open_object();
  json.field("l3", l3.l3);
  json.field("occupancy_bytes", l3.occupancy_bytes);
  json.field("memory_bytes", l3.memory_bytes);
  json.field("local_memory_bytes", l3.local_memory_bytes);
  json.close_object();
}

void write_profile(JsonWriter& json, const Profile& profile) {
  json.open_object();
  json.field("format", std::string_view("atoll/runtime-profile"));
  json.field("version", 1);
  json.field("seconds", profile.seconds);
  json.field("cpu", profile.cpu);
  json.field("fills_of", profile.fills_of);
  json.field("fills_source", profile.fills_source);
  json.key("workers");
  json.open_array();
  for (const WorkerProfile& worker : profile.workers) write_worker(json, worker);
  json.close_array();
  json.key("l3");
  json.open_array();
  for (const L3Profile& l3 : profile.l3) write_l3(json, l3);
  json.close_array();
  json.field("working_set_bytes", profile.working_set_bytes);
  json.field("working_set_source", profile.working_set_source);
  json.key("remarks");
  json.open_array();
  for (const std::string& remark : profile.remarks) json.text(remark);
  json.close_array();
  json.close_object();
  json.flush();
}

}  // namespace

std::string_view fill_source_name(FillSource source) {
  constexpr std::array<std::string_view, kFillSources> kNames = {"local_chiplet", "remote_chiplet",
                                                                 "node_cache",    "remote_node",
                                                                 "memory_local",  "memory_remote"};
  return kNames.at(static_cast<std::size_t>(source));
}

std::vector<SectionProfile> section_totals(const Profile& profile) {
  std::map<std::string, SectionProfile> totals;
  for (const WorkerProfile& worker : profile.workers) {
    for (const SectionProfile& section : worker.sections) {
      SectionProfile& total = totals[section.name];
      total.name = section.name;
      total.entered += section.entered;
      total.seconds += section.seconds;
      total.fills_s += section.fills_s;
      for_each_count([](const char*, std::uint64_t& sum, std::uint64_t more) { sum += more; },
                     total.counts, section.counts);
      runtime::add_fills(total.fills, section.fills);
    }
  }
  std::vector<SectionProfile> all;
  all.reserve(totals.size());
  for (auto& [name, total] : totals) all.push_back(std::move(total));
  return all;
}

std::string profile_json(const Profile& profile) {
  std::string text;
  JsonWriter json([&](std::string_view part) { text += part; });
  write_profile(json, profile);
  return text;
}

void write_profile_json(const Profile& profile, const std::string& path) {
  runtime::write_whole(path, [&](base::WholeFile& file) {
    file.write(profile_json(profile));
    file.write("\n");
  });
}

}  // namespace atl
