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

// build/bin/flydsl-aot lies two folders below the sources, as the presets put it.
fs::path program_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

fs::path scripts_folder() {
  const char *folder = std::getenv("FLYDSL_AOT_PEERS_DIR");
  const fs::path path = folder && folder[0]
                            ? fs::path(folder)
                            : program_folder().parent_path().parent_path() / "test/emulator/peers";
  if (!fs::exists(path / "timing.py")) {
    bad_input("--peers: no timing.py in " + path.string() +
              "; FLYDSL_AOT_PEERS_DIR names the folder test/emulator/peers of a checkout");
  }
  return path;
}

// Where `fetch.sh` puts the kernels for the tests.
fs::path objects_folder() {
  const char *folder = std::getenv("FLYDSL_AOT_PEERS_OBJECTS");
  return folder && folder[0] ? fs::path(folder) : program_folder().parent_path() / "peers";
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of("\n ") + 1);
  return text.substr(text.find_last_of('\n') + 1);
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

nlohmann::json model_peers(const EmulatorLibrary &emulator, const Operator &op,
                           const Problem &problem, const std::vector<std::string> &peers) {
  const fs::path objects = objects_folder();
  std::vector<std::string> command = {"python3",   (scripts_folder() / "timing.py").string(),
                                      "--library", emulator.path(),
                                      "--objects", objects.string(),
                                      "--op",      op.name};
  const auto description = problem.description();
  if (description.empty()) bad_input(std::string("--peers: there are none for ") + op.name);
  for (const auto &[name, value] : description)
    command.insert(command.end(), {"--problem", name + "=" + value});
  std::string names;
  for (const std::string &peer : peers) names += (names.empty() ? "" : ",") + peer;
  command.insert(command.end(), {"--peers", names});

  const ProgramResult result = run_program(command);
  if (result.exit_status == kObjectsMissing) bad_input("--peers: " + last_line(result.errors));
  if (result.exit_status != 0)
    throw ToolError(kExitFailure, "--peers: timing.py: " + last_line(result.errors));
  nlohmann::json list = nlohmann::json::array();
  for (size_t begin = 0; begin < result.output.size();) {
    const size_t end = std::min(result.output.find('\n', begin), result.output.size());
    nlohmann::json peer = nlohmann::json::parse(result.output.substr(begin, end - begin));
    if (peer.contains("seconds"))
      peer["problem_tflops"] = problem.flops() / peer.at("seconds").get<double>() * 1e-12;
    list.push_back(std::move(peer));
    begin = end + 1;
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    if (i >= list.size() || list[i].value("peer", "") != peers[i])
      throw ToolError(kExitFailure, "--peers: timing.py gave no result for " + peers[i]);
  }
  return list;
}

}  // namespace flydsl::tools
