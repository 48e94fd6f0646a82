// Runs LLVMFuzzerTestOneInput on mutations of seed files: topology_fuzz COUNT FOLDER...
// The same count gives the same inputs. An input that fails is left in topology_fuzz.failed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

// Values that have hurt parsers before, and words that hwloc knows.
const std::vector<std::string>& tokens() {
  static const std::vector<std::string> all{"-1",
                                            "0",
                                            "4294967295",
                                            "18446744073709551615",
                                            "0x0",
                                            "0xf...f",
                                            "0xffffffff,0xffffffff",
                                            "NUMANode",
                                            "Package",
                                            "PU",
                                            "Core",
                                            "Group",
                                            "L3Cache",
                                            "Misc",
                                            "Bridge",
                                            "OSDev",
                                            "Die",
                                            "cpuset",
                                            "nodeset",
                                            "complete_cpuset",
                                            "os_index",
                                            "depth",
                                            "<object",
                                            "</object>",
                                            "\"",
                                            "/>",
                                            "<info name=\"a\" value=\"b\"/>",
                                            "<distances2 ",
                                            "version=\"1.0\"",
                                            "&#0;",
                                            "\xff"};
  return all;
}

// Attribute values carry the meaning: most mutations should hit them.
std::size_t somewhere_in_a_value(Random& random, const std::string& text) {
  const std::size_t start = text.find("=\"", below(random, text.size()));
  return start == std::string::npos ? below(random, text.size()) : start + 2;
}

std::string mutate(Random& random, std::string text) {
  for (std::size_t rounds = 1 + below(random, 4); rounds > 0 && !text.empty(); --rounds) {
    const std::size_t at = somewhere_in_a_value(random, text);
    if (at >= text.size()) continue;
    const std::size_t length = std::min(text.size() - at, 1 + below(random, 200));
    const std::string& token = tokens()[below(random, tokens().size())];
    switch (below(random, 6)) {
      case 0: text[at] = static_cast<char>(below(random, 256)); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(random, text.size()), length)); break;
      case 3: {
        const std::size_t end = text.find('"', at);
        if (end != std::string::npos) text.replace(at, end - at, token);
        break;
      }
      case 4: text.insert(at, token); break;
      default:
        if (below(random, 8) == 0) text.resize(at);
        break;
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: topology_fuzz COUNT FOLDER...\n";
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Random random(20251121);
  const int count = std::atoi(argv[1]);
  for (int i = 0; i < count; ++i) {
    const std::string input = mutate(random, seeds[static_cast<std::size_t>(i) % seeds.size()]);
    std::ofstream("topology_fuzz.failed", std::ios::binary) << input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
  std::filesystem::remove("topology_fuzz.failed");
  std::cout << count << " mutations of " << seeds.size() << " seeds: no crash of ours\n";
  return 0;
}
