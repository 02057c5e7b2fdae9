// flydsl-emu-coverage: which instructions of a target the emulator executes. See README.md.
#include <fnmatch.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "emulator/coverage/sweep.h"

namespace {

using flydsl::emu::coverage::Mnemonic;
using flydsl::emu::coverage::Sweep;

constexpr double kWanted = 0.95;  // of the gfx950 mnemonics that are legal in a compute kernel

// One line of the file of justifications: pattern, class, reason.
struct Justification {
  std::string pattern, kind, reason;
  int used = 0;
};

bool read_justifications(const std::string &path, std::vector<Justification> &out) {
  std::ifstream file(path);
  if (!file) return std::cerr << "cannot read " << path << "\n", false;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    Justification j;
    in >> j.pattern >> j.kind >> std::ws;
    std::getline(in, j.reason);
    if (j.reason.empty() || (j.kind != "illegal" && j.kind != "missing"))
      return std::cerr << path << ": not `pattern illegal|missing reason`: " << line << "\n", false;
    out.push_back(j);
  }
  return true;
}

Justification *find(std::vector<Justification> &all, const std::string &mnemonic) {
  for (Justification &j : all)
    if (fnmatch(j.pattern.c_str(), mnemonic.c_str(), 0) == 0) return &j;
  return nullptr;
}

std::string forms_of(const Mnemonic &m) {
  std::string s;
  for (const auto &[form, count] : m.forms)
    s += (s.empty() ? "" : " ") + (form.empty() ? std::string("plain") : form);
  return s;
}

int usage() {
  std::cerr << "usage: flydsl-emu-coverage [--refused FILE] [--out FILE] [target...]\n"
               "Prints a table of the targets' instructions (default gfx950 gfx942 gfx90a). With "
               "--refused,\nthe exit status is 1 when an instruction is refused without a line in "
               "FILE, a line has no use,\nor too few of gfx950's instructions are executed.\n";
  return 2;
}

}  // namespace

int main(int argc, char **argv) {
  std::string refused, out_path;
  std::vector<std::string> targets;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--refused") && i + 1 < argc)
      refused = argv[++i];
    else if (!std::strcmp(argv[i], "--out") && i + 1 < argc)
      out_path = argv[++i];
    else if (argv[i][0] == '-')
      return usage();
    else
      targets.push_back(argv[i]);
  }
  if (targets.empty()) targets = {"gfx950", "gfx942", "gfx90a"};
  std::vector<Justification> justified;
  if (!refused.empty() && !read_justifications(refused, justified)) return 2;

  std::ostringstream table;
  bool good = true;
  for (const std::string &target : targets) {
    const Sweep found = flydsl::emu::coverage::sweep(target);
    if (found.empty()) return std::cerr << "no instructions for " << target << "\n", 2;
    int executed = 0, missing = 0, illegal = 0;
    table << "# " << target << "\n\n| mnemonic | encoding | forms | state |\n|---|---|---|---|\n";
    for (const auto &[name, m] : found) {
      std::string state = "executed";
      Justification *j = m.refusal.empty() ? nullptr : find(justified, name);
      if (m.refusal.empty()) {
        ++executed;
      } else if (j) {
        ++j->used;
        ++(j->kind == "illegal" ? illegal : missing);
        state = "refused, " + j->kind + ": " + j->reason;
      } else {
        ++missing;
        state = "refused: " + m.refusal + ": `" + m.refused_text + "`";
        if (!refused.empty()) {
          good = false;
          std::cerr << target << ": " << name << " is refused without a justification: `"
                    << m.refused_text << "`: " << m.refusal << "\n";
        }
      }
      table << "| " << name << " | " << m.encoding << " | " << forms_of(m) << " | " << state
            << " |\n";
    }
    const double share = double(executed) / (executed + missing);
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s: %zu mnemonics, %d executed, %d missing, %d not legal in a compute kernel; "
                  "%.1f %% of the legal ones are executed",
                  target.c_str(), found.size(), executed, missing, illegal, 100 * share);
    table << "\n" << text << "\n\n";
    std::cerr << text << "\n";
    if (!refused.empty() && target == "gfx950" && share < kWanted) {
      good = false;
      std::cerr << "too few: " << 100 * kWanted << " % are wanted\n";
    }
  }
  for (const Justification &j : justified)
    if (!j.used) {
      good = false;
      std::cerr << refused << ": no refused instruction matches `" << j.pattern << "`\n";
    }
  if (out_path.empty()) {
    std::cout << table.str();
  } else if (!(std::ofstream(out_path) << table.str()).flush()) {
    return std::cerr << "cannot write " << out_path << "\n", 2;
  }
  return good ? 0 : 1;
}
