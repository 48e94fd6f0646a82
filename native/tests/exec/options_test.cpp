// The command line: numactl's spellings, and where places end and the command begins.

#include "options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fault.hpp"

namespace atl::exec {
namespace {

class Parsed {
 public:
  explicit Parsed(std::vector<std::string> words) : words_(std::move(words)) {
    words_.insert(words_.begin(), "atoll-exec");
    for (std::string& word : words_) {
      argv_.push_back(word.data());
    }
    argv_.push_back(nullptr);
    options_ = parse_options(static_cast<int>(words_.size()), argv_.data());
  }

  const Options* operator->() const { return &options_; }

  [[nodiscard]] std::vector<std::string> command() const {
    std::vector<std::string> words;
    for (char** word = options_.command; *word != nullptr; ++word) {
      words.emplace_back(*word);
    }
    return words;
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
  Options options_;
};

using Words = std::vector<std::string>;

std::string fault_of(const Words& words) {
  try {
    (void)Parsed(words);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.exit_status(), kExitOwnFailure);
    return fault.what();
  }
  return "";
}

TEST(Options, SpellingsOfOneFlag) {
  for (const Words& flag : {Words{"-m0-1"}, Words{"-m", "0-1"}, Words{"--membind=0-1"},
                            Words{"--membind", "0-1"}, Words{"--memb", "0-1"}}) {
    Words words = flag;
    words.emplace_back("true");
    const Parsed parsed(words);
    ASSERT_TRUE(parsed->memory.has_value());
    EXPECT_EQ(parsed->memory->mode, MemoryMode::kBind);
    EXPECT_EQ(parsed->memory->nodes, "0-1");
    EXPECT_EQ(parsed.command(), Words{"true"});
  }
}

TEST(Options, MemoryModes) {
  const std::vector<std::pair<std::string, MemoryMode>> modes{
      {"-m0", MemoryMode::kBind},
      {"-i0", MemoryMode::kInterleave},
      {"-p0", MemoryMode::kPreferred},
      {"-P0", MemoryMode::kPreferredMany},
      {"-l", MemoryMode::kLocal},
      {"-w0", MemoryMode::kWeightedInterleave},
      {"--preferred=0", MemoryMode::kPreferred}};
  for (const auto& [flag, mode] : modes) {
    EXPECT_EQ(Parsed({flag, "true"})->memory->mode, mode) << flag;
  }
}

TEST(Options, CpuFlagsKeepTheirOrder) {
  const Parsed parsed({"-N", "0", "-C1", "--cpunodebind=2", "true"});
  ASSERT_EQ(parsed->cpu_flags.size(), 3U);
  EXPECT_TRUE(parsed->cpu_flags[0].by_node);
  EXPECT_FALSE(parsed->cpu_flags[1].by_node);
  EXPECT_EQ(parsed->cpu_flags[2].list, "2");
}

TEST(Options, SameRepeatsTheNodeListBefore) {
  EXPECT_EQ(Parsed({"-N", "1-2", "-m", "same", "true"})->memory->nodes, "1-2");
  EXPECT_NE(fault_of({"-C", "1", "-m", "same", "true"}), "");
}

TEST(Options, PlacesAndCommand) {
  const Parsed parsed({"-m0", "chiplet:0-1", "~pu:3", "x0xff", "--", "cmd", "-m", "--", "core:0"});
  EXPECT_EQ(parsed->places, (Words{"chiplet:0-1", "~pu:3", "x0xff"}));
  EXPECT_EQ(parsed.command(), (Words{"cmd", "-m", "--", "core:0"}));
}

TEST(Options, WithoutPlacesTheFirstOperandIsTheCommand) {
  EXPECT_EQ(Parsed({"-C0", "grep", "--", "x"}).command(), (Words{"grep", "--", "x"}));
  EXPECT_EQ(Parsed({"-C0", "--", "core:0"}).command(), Words{"core:0"})
      << "after -- everything is the command";
  EXPECT_EQ(Parsed({"./a:b"}).command(), Words{"./a:b"}) << "a path with a colon is no place";
}

TEST(Options, OwnFlags) {
  const Parsed parsed({"--malloc=jemalloc", "--no-thp", "--dry-run", "--machine", "f", "true"});
  EXPECT_EQ(parsed->malloc, "jemalloc");
  EXPECT_TRUE(parsed->no_thp);
  EXPECT_TRUE(parsed->dry_run);
  EXPECT_EQ(parsed->machine_file, "f");
  EXPECT_TRUE(Parsed({"--help"})->help);
  EXPECT_TRUE(Parsed({"--version"})->version);
}

TEST(Options, Faults) {
  EXPECT_TRUE(fault_of({"-m0", "-i0", "true"}).starts_with("conflicting memory policies"));
  EXPECT_TRUE(fault_of({"-m0", "-m0", "true"}).starts_with("conflicting memory policies"));
  EXPECT_TRUE(fault_of({"--pre=0", "true"}).starts_with("--pre=0: unknown or ambiguous"));
  EXPECT_TRUE(fault_of({"-lZ", "true"}).starts_with("-Z: unknown"));
  EXPECT_TRUE(fault_of({"--malloc"}).starts_with("--malloc: a value is missing"));
  EXPECT_TRUE(fault_of({"core:0", "true"}).starts_with("'--' is missing"));
  EXPECT_TRUE(fault_of({"core:0", "-l", "--", "true"}).starts_with("-l: flags come before"));
  EXPECT_TRUE(fault_of({}).starts_with("no command"));
  EXPECT_TRUE(fault_of({"-C0", "--"}).starts_with("no command"));
}

}  // namespace
}  // namespace atl::exec
