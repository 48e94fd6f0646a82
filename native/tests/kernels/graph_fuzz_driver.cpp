// Runs LLVMFuzzerTestOneInput on mutations of small graphs: graph_fuzz COUNT
// The same count gives the same inputs. An input that fails is left in graph_fuzz.failed.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

std::string serialized(char format, std::uint64_t edges, const std::vector<std::uint64_t>& offsets,
                       const std::vector<std::uint32_t>& entries) {
  std::string bytes = {format, '\0'};
  const std::uint64_t vertices = offsets.size() - 1;
  const auto add = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(edges);
  add(vertices);
  for (const std::uint64_t offset : offsets) add(offset);
  for (const std::uint32_t entry : entries) add(entry);
  return bytes;
}

// The first byte is the format (graph_fuzz.cpp).
std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {"\0# a comment\n0 1\r\n2 0\n\n3 3\n0 1\n"s,
          "\1"
          "0 1 5\n1 2 7.0\n2 1 2147483647"s,
          "\2%%MatrixMarket matrix coordinate pattern general\n% c\n3 3 2\n1 2\n3 1\n"s,
          "\2%%MatrixMarket matrix coordinate real symmetric\n4 4 2\n2 1 3.0\n4 3 1e2\n"s,
          serialized('\3', 4, {0, 1, 3, 4}, {1, 0, 2, 1}),
          serialized('\4', 4, {0, 1, 3, 4}, {1, 5, 0, 5, 2, 6, 1, 6})};
}

// What has hurt parsers before.
const std::vector<std::string>& tokens() {
  using namespace std::string_literals;
  static const std::vector<std::string> all = {"-1",
                                               "0",
                                               "4294967294",
                                               "4294967295",
                                               "4294967296",
                                               "18446744073709551616",
                                               "nan",
                                               "-inf",
                                               "1e999",
                                               "0x1",
                                               "1.5",
                                               "\n",
                                               "\r\n",
                                               " ",
                                               "\t",
                                               "#",
                                               "%",
                                               "%%MatrixMarket ",
                                               "symmetric",
                                               "complex",
                                               "\xff\xff\xff\xff",
                                               "\xff\xff\xff\xff\xff\xff\xff\xff",
                                               "\0\0\0\0"s,
                                               "\0\0\0\0\0\0\0\0"s,
                                               "\0\0\0\x80"s};
  return all;
}

std::string mutate(Random& random, std::string text) {
  for (std::size_t rounds = 1 + below(random, 4); rounds > 0 && !text.empty(); --rounds) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = std::min(text.size() - at, 1 + below(random, 20));
    const std::string& token = tokens()[below(random, tokens().size())];
    switch (below(random, 6)) {
      case 0: text[at] = static_cast<char>(below(random, 256)); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(random, text.size()), length)); break;
      case 3: text.replace(at, std::min(length, token.size()), token); break;
      case 4: text.insert(at, token); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: graph_fuzz COUNT\n";
    return 2;
  }
  const std::vector<std::string> all = seeds();
  Random random(20261126);
  const int count = std::atoi(argv[1]);
  for (int i = 0; i < count; ++i) {
    const std::string input = mutate(random, all[static_cast<std::size_t>(i) % all.size()]);
    std::ofstream("graph_fuzz.failed", std::ios::binary) << input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
  std::filesystem::remove("graph_fuzz.failed");
  std::cout << count << " mutations of " << all.size() << " graphs: no crash of ours\n";
  return 0;
}
