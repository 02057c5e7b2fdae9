#include "tools/peers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/exit_status.h"
#include "tools/subprocess.h"

namespace flydsl::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPeers[] = {"aiter", "triton", "flydsl"};
constexpr int kObjectsMissing = 3;  // exit status of timing.py

fs::path scripts_folder(const std::string &option) {
  const char *folder = std::getenv("FLYDSL_AOT_PEERS_DIR");
  // build/bin/flydsl-aot lies two folders below the sources, as the presets put it.
  const fs::path path = folder && folder[0]
                            ? fs::path(folder)
                            : program_folder().parent_path().parent_path() / "test/emulator/peers";
  if (!fs::exists(path / "timing.py")) {
    bad_input(option + ": no timing.py in " + path.string() +
              "; FLYDSL_AOT_PEERS_DIR names the folder test/emulator/peers of a checkout");
  }
  return path;
}

// Where `fetch.sh` puts the kernels for the tests.
fs::path objects_folder() {
  const char *folder = std::getenv("FLYDSL_AOT_PEERS_OBJECTS");
  return folder && folder[0] ? fs::path(folder) : program_folder().parent_path() / "peers";
}

}  // namespace

std::vector<std::string> parse_peers(const std::string &text) {
  std::vector<std::string> peers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string peer = text.substr(begin, end - begin);
    if (std::find(std::begin(kPeers), std::end(kPeers), peer) == std::end(kPeers))
      bad_input("--peers " + text + ": '" + peer + "' is unknown; there is aiter, triton, flydsl");
    if (std::find(peers.begin(), peers.end(), peer) != peers.end())
      bad_input("--peers " + text + ": '" + peer + "' is given twice");
    peers.push_back(peer);
    begin = end + 1;
  }
  return peers;
}

Json run_timing_script(const std::string &option, const EmulatorLibrary &emulator,
                       const std::vector<std::string> &arguments) {
  std::vector<std::string> command = {"python3",   (scripts_folder(option) / "timing.py").string(),
                                      "--library", emulator.path(),
                                      "--objects", objects_folder().string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const ProgramResult result = run_program(command);
  if (result.exit_status == kObjectsMissing) bad_input(option + ": " + last_line(result.errors));
  if (result.exit_status != 0)
    throw ToolError(kExitFailure,
                    option + ": timing.py: " +
                        last_line(result.errors.empty() ? result.output : result.errors));
  Json lines = Json::array();
  for (size_t begin = 0; begin < result.output.size();) {
    const size_t end = std::min(result.output.find('\n', begin), result.output.size());
    lines.push_back(Json::parse(result.output.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

Json model_peers(const EmulatorLibrary &emulator, const Operator &op, const Problem &problem,
                 const std::vector<std::string> &peers, const std::string &constants_hash) {
  const auto description = problem.description();
  if (description.empty()) bad_input(std::string("--peers: there are none for ") + op.name);
  std::vector<std::string> arguments = {"--op", op.name};
  for (const auto &[name, value] : description)
    arguments.insert(arguments.end(), {"--problem", name + "=" + value});
  std::string names;
  for (const std::string &peer : peers) names += (names.empty() ? "" : ",") + peer;
  arguments.insert(arguments.end(), {"--peers", names});

  Json list = run_timing_script("--peers", emulator, arguments);
  for (size_t i = 0; i < peers.size(); ++i) {
    if (i >= list.size() || list[i].value("peer", "") != peers[i])
      throw ToolError(kExitFailure, "--peers: timing.py gave no result for " + peers[i]);
    if (list[i].contains("refused")) continue;
    if (list[i].at("constants_hash") != constants_hash)
      throw ToolError(kExitFailure, "--peers: " + peers[i] + " was modelled with constants " +
                                        list[i]["constants_hash"].dump() + ", this launch with " +
                                        constants_hash);
    list[i]["problem_tflops"] = problem.flops() / list[i].at("seconds").get<double>() * 1e-12;
  }
  return list;
}

}  // namespace flydsl::tools
