#include "cpu_model.hpp"

#include "events/amd.hpp"
#include "events/intel.hpp"
#include "text.hpp"

namespace atl::runtime {

namespace {

// Empty text or 'unknown' (a stepping that a hypervisor hides) is not a number.
std::optional<int> small_number(std::string_view text) {
  const std::optional<std::uint64_t> value = whole_number(text);
  if (!value || *value > 0xffff) return std::nullopt;
  return static_cast<int>(*value);
}

bool within(int value, int low, int high) { return low <= value && value <= high; }

// Model ranges as in Linux tools/perf/pmu-events/arch/x86/mapfile.csv.
const FillTable* amd_table(const CpuModel& cpu) {
  const int model = cpu.model;
  switch (cpu.family) {
    case 0x17: return model >= 0x30 ? &kZen2 : nullptr;  // below: Zen 1, whose events differ
    case 0x19:
      return within(model, 0x00, 0x0f) || within(model, 0x20, 0x2f) || within(model, 0x40, 0x5f)
                 ? &kZen3
                 : &kZen4;
    case 0x1a:  // the rest of the family is Zen 6
      return within(model, 0x00, 0x2f) || within(model, 0x40, 0x4f) || within(model, 0x60, 0x7f)
                 ? &kZen5
                 : nullptr;
    default: return nullptr;
  }
}

const FillTable* intel_table(const CpuModel& cpu) {
  if (cpu.family != 6) return nullptr;
  switch (cpu.model) {
    case 0x55: return cpu.stepping <= 4 ? &kSkylakeSp : &kCascadeLake;
    case 0x6a:
    case 0x6c: return &kIceLakeSp;
    case 0x8f: return &kSapphireRapids;
    case 0xcf: return &kEmeraldRapids;
    case 0xad:
    case 0xae: return &kGraniteRapids;
    default: return nullptr;
  }
}

}  // namespace

std::optional<CpuModel> cpu_model(std::string_view cpuinfo) {
  cpuinfo = cpuinfo.substr(0, cpuinfo.find("\n\n"));  // empty lines separate CPUs
  const auto number = [&](std::string_view key) -> std::optional<int> {
    const std::optional<std::string_view> value = value_of(cpuinfo, key);
    return value ? small_number(*value) : std::nullopt;
  };
  const std::optional<std::string_view> vendor = value_of(cpuinfo, "vendor_id");
  const std::optional<int> family = number("cpu family");
  const std::optional<int> model = number("model");
  if (!vendor || !family || !model) return std::nullopt;
  return CpuModel{std::string(*vendor), *family, *model, number("stepping").value_or(0)};
}

const FillTable* fill_table(const CpuModel& cpu) {
  if (cpu.vendor == "AuthenticAMD") return amd_table(cpu);
  if (cpu.vendor == "GenuineIntel") return intel_table(cpu);
  return nullptr;
}

}  // namespace atl::runtime
