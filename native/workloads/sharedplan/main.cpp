// atoll-sharedplan: a small engine whose operators all queries share, in the manner of SharedDB, as
// query-plan-deployment-poster deploys one; TPC-W's browsing mix on data of its own.
//
//   atoll-sharedplan --scale 0.01 --browsers 100 --seconds 10
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/available.hpp"
#include "base/program.hpp"
#include "base/whole_file.hpp"
#include "evaluate.hpp"
#include "flags.hpp"
#include "report.hpp"

namespace atl::sharedplan {
namespace {

using kernels::UsageFault;
using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "atoll-sharedplan";
constexpr std::chrono::seconds kWarmUp{1};
constexpr double kMostScale = 100;
constexpr std::size_t kOfEach = 16;  // interactions, in the first cycle

volatile std::sig_atomic_t interrupted = 0;

const kernels::Parameters& parameters() {
  static const kernels::Parameters all = {
      {"scale", "0.01", "of the data; 1: 100,000 items, 11.5 million customers, 1.4 GiB"},
      {"seed", "1", "of the data and of what browsers ask", 0, INT64_MAX},
      {"browsers", "100", "emulated browsers", 1, 100'000},
      {"think-ms", "0", "time between an answer and the next question, on average", 0, 3'600'000},
      {"seconds", "10", "to measure, after a second of warming up", 1, 3'600},
      {"placement", "",
       "file of format atoll/placement: the core of each operator (a thread each, "
       "which the system places)"},
      {"dump", "", "write the tables, and answers to each interaction, into this folder, and end"},
      {"requests",
       "no",
       "read requests from standard input instead: 'measure SECONDS' or 'profile "
       "SECONDS', a line of JSON for each",
       0,
       0,
       {"no", "yes"}},
  };
  return all;
}

std::string help() {
  return "Usage: atoll-sharedplan [FLAGS]\n\n"
         "Runs TPC-W's browsing mix on a plan of 44 operators that all queries share,\n"
         "verifies answers, and prints one JSON object.\n\n"
         "Flags, with their defaults in parentheses\n" +
         kernels::help_of(parameters()) +
         "  --help, --version\n\n"
         "Example: atoll-sharedplan --scale 0.01 --browsers 100 --seconds 10\n"
         "Exit status: 0; 1 wrong answer; 2 wrong usage or too little memory; 5 another\n"
         "failure; 130 interrupted\n";
}

double scale_of(const std::string& text) {
  std::istringstream words(text);
  double scale = 0;
  if (words >> scale && words.eof() && scale > 0 && scale <= kMostScale) return scale;
  kernels::fail_usage(kProgram, "--scale " + text + ": not a number above 0 and up to 100");
}

void require_memory(double scale) {
  // Beside the tables, batches hold at most a small part of them.
  const std::uint64_t needed = Tables::bytes(scale) * 5 / 4 + (std::uint64_t{64} << 20);
  const std::uint64_t available = base::available_bytes();
  if (needed <= available) return;
  const auto mebibytes = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  throw UsageFault("the data needs " + mebibytes(needed) + " of memory, and " +
                   mebibytes(available) + " are available; make --scale smaller");
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageFault("--placement " + path + ": cannot be read");
  return text.str();
}

void write(const std::string& folder, const std::string& name, const std::string& text) {
  base::WholeFile file(folder + "/" + name);
  file.write(text);
  file.commit();
}

std::string csv(const Table& table) {
  std::string text;
  for (const Column& column : table.columns) text += column.name + ",";
  text.back() = '\n';
  for (std::uint32_t row = 0; row < table.rows; ++row) {
    for (const Column& column : table.columns)
      text += text_of(column.type, column.values[row]) + ",";
    text.back() = '\n';
  }
  return text;
}

// A cycle with some of every interaction, verified.
std::vector<std::shared_ptr<Query>> run_each(Engine& engine, std::uint64_t seed) {
  std::vector<std::shared_ptr<Query>> all;
  while (all.size() < kOfEach * interactions().size()) {
    all.push_back(
        std::make_shared<Query>(all.size() % interactions().size(),
                                draw_parameters(engine.tables(), mixed(~seed, all.size()))));
  }
  engine.run(all);
  for (const auto& query : all) verify(engine.tables(), *query);
  return all;
}

// Each query with its parameters and, by statement, its rows as text.
Json answers_of(const Engine& engine, const std::vector<std::shared_ptr<Query>>& queries) {
  std::array<const Outputs*, kStatements> outputs{};
  for (const auto& station : engine.stations()) {
    if (!station->takers.empty()) continue;
    for (const Statement each : station->spec->statements) {
      outputs[static_cast<std::size_t>(each)] = &station->made.outputs;
    }
  }
  Json all = Json::array();
  for (const auto& query : queries) {
    Json& made =
        all.emplace_back(Json{{"interaction", interactions()[query->interaction].name},
                              {"customer", query->parameter(Parameter::kCustomer)},
                              {"item", query->parameter(Parameter::kItem)},
                              {"subject", query->parameter(Parameter::kSubject)},
                              {"word", text_of(Type::kWord, query->parameter(Parameter::kWord))},
                              {"cart", query->parameter(Parameter::kCart)},
                              {"answers", Json::object()}});
    for (const Statement statement : query->statements) {
      const Outputs& columns = *outputs[static_cast<std::size_t>(statement)];
      Json& rows = made["answers"][name_of(statement)] = Json::array();
      const Rows& values = query->answers[static_cast<std::size_t>(statement)];
      for (std::size_t at = 0; at < values.size(); ++at) {
        if (at % columns.size() == 0) rows.emplace_back(Json::array());
        rows.back().push_back(text_of(columns[at % columns.size()].type, values[at]));
      }
    }
  }
  return all;
}

void print_line(const Json& made) { base::print(made.dump() + "\n"); }

int serve(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "--version") {
    base::print(first == "--help" ? help() : "atoll-sharedplan " ATOLL_VERSION "\n");
    return 0;
  }
  kernels::Values given = kernels::read_flags(argc, argv, 1, kProgram, kProgram, {&parameters()});
  for (const kernels::Parameter& each : parameters()) given.emplace(each.name, each.otherwise);
  const auto number = [&](const char* name) { return std::stoull(given.at(name)); };
  const double scale = scale_of(given.at("scale"));
  const Places here = places_here();
  Placement placement;
  if (!given.at("placement").empty()) {
    placement = parse_placement(content_of(given.at("placement")), plan(), here);
  }
  require_memory(scale);

  Engine engine(scale, number("seed"), placement, here);
  const std::string& folder = given.at("dump");
  const auto checked = run_each(engine, number("seed"));
  if (!folder.empty()) {
    for (const Table& table : engine.tables().all()) write(folder, table.name + ".csv", csv(table));
    write(folder, "answers.json", answers_of(engine, checked).dump() + "\n");
    return 0;
  }
  // Until here there is nothing to end in order. Without SA_RESTART, and with its input closed, no
  // read goes on.
  struct sigaction action{};
  action.sa_handler = [](int) {
    interrupted = 1;
    close(STDIN_FILENO);
  };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::vector<int> others;  // CPUs of cores that no operator uses
  for (const Core& core : here.cores) {
    const bool used = std::ranges::any_of(core.cpus, [&](int cpu) {
      return std::ranges::find(placement.cpus, cpu) != placement.cpus.end();
    });
    if (!used) others.insert(others.end(), core.cpus.begin(), core.cpus.end());
  }
  if (placement.cpu_of.empty()) others.clear();
  Browsers browsers(
      engine, {number("browsers"), std::chrono::milliseconds(number("think-ms")), number("seed")},
      others);
  const auto stopped = [] { return interrupted != 0; };
  const auto result = [&](const Stretch& stretch) {
    Json made = {{"format", "atoll/shared-plan"},
                 {"version", 1},
                 {"deployment", placement.deployment},
                 {"scale", scale},
                 {"seed", number("seed")},
                 {"tables_bytes", Tables::bytes(scale)},
                 {"browsers", number("browsers")},
                 {"think_ms", number("think-ms")}};
    made.update(throughput(stretch, here));
    return made;
  };
  (void)watch(engine, browsers, kWarmUp, stopped);
  if (given.at("requests") == "no") {
    const Stretch stretch =
        watch(engine, browsers, std::chrono::seconds(number("seconds")), stopped);
    if (stopped()) return 130;
    print_line(result(stretch));
    return 0;
  }
  print_line({{"threads", threads(engine)}});
  std::string what;
  for (double seconds = 0; !stopped() && std::cin >> what >> seconds;) {
    if ((what != "measure" && what != "profile") || seconds <= 0) {
      throw UsageFault(what + ": not a request; there are 'measure SECONDS', 'profile SECONDS'");
    }
    const auto time = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
    const Stretch stretch = watch(engine, browsers, time, stopped);
    if (!stopped()) print_line(what == "measure" ? result(stretch) : graph(engine, stretch));
  }
  return stopped() ? 130 : 0;
}

int failed(const char* why, int status) {
  std::fprintf(stderr, "%s: %s\n", kProgram, why);
  return status;
}

}  // namespace
}  // namespace atl::sharedplan

int main(int argc, char** argv) {
  using namespace atl;
  try {
    return sharedplan::serve(argc, argv);
  } catch (const kernels::UsageFault& fault) {
    return sharedplan::failed(fault.what(), 2);
  } catch (const kernels::WrongAnswer& fault) {
    return sharedplan::failed(fault.what(), 1);
  } catch (const std::bad_alloc&) {
    return sharedplan::failed("malloc or mmap refused; make --scale smaller", 5);
  } catch (const std::exception& fault) {
    return sharedplan::failed(fault.what(), 5);
  }
}
