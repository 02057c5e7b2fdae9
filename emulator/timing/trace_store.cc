#include "emulator/timing/trace_store.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "emulator/engine/program_impl.h"

namespace flydsl::emu::timing {
namespace {

constexpr char kMagic[] = "flydsl timing trace 2\n";
// Launches of other processors are not modelled, so not saved.
constexpr char kTarget[] = "gfx950";
// More than any launch has: what a damaged file may ask for at most.
constexpr uint64_t kMost = uint64_t(1) << 31;

// Numbers in 7-bit groups, low ones first; differences of neighbours are small.
class Writer {
 public:
  std::string bytes;
  void number(uint64_t x) {
    for (; x >= 0x80; x >>= 7) bytes += char(x | 0x80);
    bytes += char(x);
  }
  void difference(uint64_t x, uint64_t from) {
    const int64_t d = int64_t(x - from);
    number(uint64_t(d) << 1 ^ uint64_t(d >> 63));
  }
  void real(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    number(bits);
  }
  void text(const std::string &s) {
    number(s.size());
    bytes += s;
  }
};

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool good() const { return good_; }
  bool at_end() const { return at_ == bytes_.size(); }
  void bad() { good_ = false; }

  uint64_t number() {
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) break;
      const uint8_t byte = uint8_t(bytes_[at_++]);
      x |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return x;
    }
    good_ = false;
    return 0;
  }
  // At most `most`; 0 when it is not.
  uint64_t count(uint64_t most = kMost) {
    const uint64_t n = number();
    if (n <= most) return n;
    good_ = false;
    return 0;
  }
  uint64_t difference(uint64_t from) {
    const uint64_t d = number();
    return from + (d >> 1 ^ (~(d & 1) + 1));
  }
  double real() {
    const uint64_t bits = number();
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  std::string text() {
    const uint64_t n = count(bytes_.size() - at_);
    std::string s = bytes_.substr(at_, n);
    at_ += n;
    return s;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

void write_wave(Writer &out, const WaveTrace &wave) {
  out.number(wave.steps.size());
  // Runs of consecutive operations.
  for (size_t at = 0; at < wave.steps.size();) {
    size_t end = at + 1;
    while (end < wave.steps.size() && wave.steps[end] == wave.steps[end - 1] + 1) ++end;
    out.number(end - at);
    out.number(wave.steps[at]);
    at = end;
  }
  out.number(wave.memory.size());
  uint32_t step = 0;
  for (const MemoryUse &use : wave.memory) {
    out.number(use.step - step);
    step = use.step;
    out.number(use.line_count);
    out.number(use.phases);
    out.number(use.ideal_phases);
    out.number(use.lanes);
    out.number(use.bytes_per_lane);
    out.number(use.phase_bytes);
    out.number(uint64_t(use.kind) << 1 | uint64_t(use.device_scope));
  }
  out.number(wave.lines.size());
  uint64_t last = 0;
  for (const uint64_t line : wave.lines) {
    out.difference(line, last);
    last = line;
  }
  out.number(wave.syncs.size());
  for (const SyncUse &sync : wave.syncs) {
    out.number(sync.memory);
    out.number(sync.address << 1 | uint64_t(sync.load));
  }
}

void read_wave(Reader &in, WaveTrace &wave, uint32_t ops) {
  const uint64_t steps = in.count();
  while (in.good() && wave.steps.size() < steps) {
    const uint64_t run = in.count(steps - wave.steps.size());
    const uint64_t first = in.number();
    if (run == 0 || first > UINT32_MAX || (first & ~kNoLanes) + run > ops) return in.bad();
    for (uint64_t n = 0; n < run; ++n) wave.steps.push_back(uint32_t(first + n));
  }
  uint64_t step = 0, line = 0;
  for (uint64_t left = in.count(steps); in.good() && left; --left) {
    MemoryUse use;
    step += in.number();
    if (step >= wave.steps.size()) return in.bad();
    use.step = uint32_t(step);
    use.op = wave.steps[step] & ~kNoLanes;
    use.first_line = uint32_t(line);
    use.line_count = uint16_t(in.count(UINT16_MAX));
    use.phases = uint16_t(in.count(UINT16_MAX));
    use.ideal_phases = uint16_t(in.count(UINT16_MAX));
    use.lanes = uint16_t(in.count(UINT16_MAX));
    use.bytes_per_lane = uint16_t(in.count(UINT16_MAX));
    use.phase_bytes = uint16_t(in.count(UINT16_MAX));
    const uint64_t kind = in.count(uint64_t(MemoryKind::kCache) << 1 | 1);
    use.kind = MemoryKind(kind >> 1);
    use.device_scope = kind & 1;
    line += use.line_count;
    wave.memory.push_back(use);
  }
  if (in.count() != line) return in.bad();
  uint64_t address = 0;
  for (; in.good() && line; --line) wave.lines.push_back(address = in.difference(address));
  for (uint64_t left = in.count(wave.memory.size()), next = 0; in.good() && left; --left) {
    SyncUse sync;
    const uint64_t memory = in.number(), place = in.number();
    // Each belongs to a memory instruction of its own, in order.
    if (memory < next || memory >= wave.memory.size()) return in.bad();
    next = memory + 1;
    sync.memory = uint32_t(memory);
    sync.address = place >> 1;
    sync.load = place & 1;
    wave.syncs.push_back(sync);
  }
}

void write_groups(Writer &out, const std::vector<GroupTrace> &groups) {
  out.number(groups.size());
  for (const GroupTrace &group : groups) {
    for (const uint32_t id : group.id) out.number(id);
    out.number(group.linear_id);
    out.number(group.mfma_flops);
    out.number(group.wave_instructions);
    out.number(group.truncated);
    out.number(group.waves.size());
    for (const WaveTrace &wave : group.waves) write_wave(out, wave);
  }
}

std::vector<GroupTrace> read_groups(Reader &in, uint32_t ops) {
  std::vector<GroupTrace> groups;
  for (uint64_t left = in.count(); in.good() && left; --left) {
    GroupTrace &group = groups.emplace_back();
    for (uint32_t &id : group.id) id = uint32_t(in.count(UINT32_MAX));
    group.linear_id = in.number();
    group.mfma_flops = in.number();
    group.wave_instructions = in.number();
    group.truncated = in.number() != 0;
    for (uint64_t waves = in.count(16); in.good() && waves; --waves)
      read_wave(in, group.waves.emplace_back(), ops);
  }
  return groups;
}

void write_facts(Writer &out, const LaunchFacts &facts) {
  out.text(facts.kernel);
  out.text(facts.target);
  for (const uint32_t n : facts.grid) out.number(n);
  for (const uint32_t n : facts.block) out.number(n);
  const ComputeUnitResources &unit = facts.unit;
  for (const uint32_t n : {facts.compute_units, facts.xcds, unit.simds, unit.waves_per_simd,
                           unit.vgprs_per_simd_lane, unit.vgpr_granule, unit.groups, unit.lds_bytes,
                           unit.lds_granule_bytes, facts.group.work_items, facts.group.vgprs})
    out.number(n);
  out.number(facts.group.lds_bytes);
}

LaunchFacts read_facts(Reader &in) {
  LaunchFacts facts;
  facts.kernel = in.text();
  facts.target = in.text();
  const auto size = [&](uint32_t &n) {
    n = uint32_t(in.count());
    if (n == 0) in.bad();
  };
  for (uint32_t &n : facts.grid) size(n);
  for (uint32_t &n : facts.block) size(n);
  ComputeUnitResources &unit = facts.unit;
  for (uint32_t *n : {&facts.compute_units, &facts.xcds, &unit.simds, &unit.waves_per_simd,
                      &unit.vgprs_per_simd_lane, &unit.vgpr_granule, &unit.groups, &unit.lds_bytes,
                      &unit.lds_granule_bytes, &facts.group.work_items})
    size(*n);
  facts.group.vgprs = uint32_t(in.count());
  facts.group.lds_bytes = in.count();
  return facts;
}

void write_points(Writer &out, const std::vector<uint32_t> &points) {
  out.number(points.size());
  for (const uint32_t point : points) out.number(point);
}
std::vector<uint32_t> read_points(Reader &in) {
  std::vector<uint32_t> points;
  for (uint64_t left = in.count(1024); in.good() && left; --left)
    points.push_back(uint32_t(in.count()));
  return points;
}

// All but the period of x and the run of equal neighbours, which end the file where there is one.
void write_rule(Writer &out, const SampleRule &rule) {
  out.number(rule.x_groups());
  out.number(rule.size[2]);
  out.number(rule.size[3]);
  for (const int axis : {0, 2, 3}) write_points(out, rule.at[axis]);
  out.number(rule.scattered);
  out.number(rule.samples.size());
  for (const uint64_t sample : rule.samples) out.number(sample);
  out.real(rule.held_out_error);
  out.number(rule.held_out);
}

SampleRule read_rule(Reader &in) {
  SampleRule rule;
  for (const int axis : {0, 2, 3}) rule.size[axis] = uint32_t(in.count());
  for (const int axis : {0, 2, 3}) rule.at[axis] = read_points(in);
  rule.at[1] = {0};
  rule.scattered = in.number() != 0;
  for (uint64_t left = in.count(1 << 20); in.good() && left; --left)
    rule.samples.push_back(in.number());
  rule.held_out_error = in.real();
  rule.held_out = uint32_t(in.count());
  return rule;
}

void write_period(Writer &out, const SampleRule &rule) {
  if (rule.size[1] == 1 && rule.run == 1) return;
  out.number(rule.size[0]);
  write_points(out, rule.at[1]);
  if (rule.run != 1) out.number(rule.run);
}

void read_period(Reader &in, SampleRule &rule) {
  if (in.at_end()) return;
  const uint64_t period = in.count(rule.size[0]);
  rule.at[1] = read_points(in);
  const uint64_t run = in.at_end() ? 1 : in.count(rule.size[0]);
  if (period == 0 || run == 0 || rule.size[0] % (period * run)) return in.bad();
  rule.run = uint32_t(run);
  rule.size[1] = uint32_t(rule.size[0] / run / period);
  rule.size[0] = uint32_t(period);
}

void write_ordering(Writer &out, const Ordering &ordering) {
  out.number(ordering.tickets);
  out.number(ordering.one_counter);
  write_points(out, ordering.wait_ops);
  out.number(ordering.distance.size());
  for (const uint32_t distance : ordering.distance) out.number(distance);
  out.number(ordering.periodic);
  out.number(ordering.moved);
  write_groups(out, ordering.before);
  write_points(out, ordering.after);
}

void read_ordering(Reader &in, uint32_t ops, size_t samples, Ordering &ordering) {
  ordering.tickets = in.number() != 0;
  ordering.one_counter = in.number() != 0;
  ordering.wait_ops = read_points(in);
  for (uint64_t left = in.count(1 << 28); in.good() && left; --left)
    ordering.distance.push_back(uint32_t(in.count(1 << 20)));
  ordering.periodic = in.number() != 0;
  ordering.moved = uint32_t(in.count());
  ordering.before = read_groups(in, ops);
  ordering.after = read_points(in);
  if (ordering.after.size() != ordering.before.size()) in.bad();
  for (const uint32_t op : ordering.wait_ops)
    if (op >= ops) in.bad();
  for (const uint32_t sample : ordering.after)
    if (sample >= samples) in.bad();
}

bool consistent(const SampleRule &rule) {
  uint64_t combinations = 1;
  for (int axis = 0; axis < kAxes; ++axis) {
    if (rule.size[axis] == 0) return false;
    combinations *= rule.at[axis].size();
  }
  return !rule.samples.empty() && (rule.scattered || rule.samples.size() == combinations);
}

}  // namespace

bool save_launch(const RecordedLaunch &launch, const std::string &path, std::string *error) {
  Writer out;
  out.bytes = kMagic;
  write_facts(out, launch.facts);
  const Program &program = *launch.program;
  out.text(std::string(reinterpret_cast<const char *>(program.base), program.offsets.back()));
  write_rule(out, launch.rule);
  write_groups(out, launch.samples);
  write_groups(out, launch.streams);
  write_groups(out, launch.other_xcds);
  out.real(launch.footprint_bytes);
  write_ordering(out, launch.ordering);
  write_period(out, launch.rule);
  std::FILE *const file = std::fopen(path.c_str(), "wb");
  const bool written =
      file && std::fwrite(out.bytes.data(), 1, out.bytes.size(), file) == out.bytes.size();
  const int reason = errno;
  if (file && std::fclose(file) == 0 && written) return true;
  *error = path + ": " + std::strerror(reason);
  return false;
}

bool load_launch(const std::string &path, RecordedLaunch *launch, std::string *error) {
  std::FILE *const file = std::fopen(path.c_str(), "rb");
  if (!file) {
    *error = path + ": " + std::strerror(errno);
    return false;
  }
  const std::string magic = kMagic;
  std::string bytes;
  char part[1 << 15];
  for (size_t n; (n = std::fread(part, 1, sizeof part, file)) > 0;) {
    bytes.append(part, n);
    if (bytes.size() >= magic.size() && bytes.compare(0, magic.size(), magic) != 0) break;
  }
  std::fclose(file);
  if (bytes.compare(0, magic.size(), magic) != 0) {
    *error = path + ": no recorded launch of this version";
    return false;
  }
  Reader in(bytes.substr(magic.size()));
  launch->facts = read_facts(in);
  const std::string code = in.text();
  // LLVM ends the process that has it decode for a processor it does not know.
  if (launch->facts.target.substr(0, launch->facts.target.find(':')) != kTarget) in.bad();
  if (in.good()) {
    launch->program = decode_program(launch->facts.target, code.data(), code.size());
    const uint32_t ops = uint32_t(launch->program->ops.size());
    launch->rule = read_rule(in);
    launch->samples = read_groups(in, ops);
    launch->streams = read_groups(in, ops);
    launch->other_xcds = read_groups(in, ops);
    launch->footprint_bytes = in.real();
    read_ordering(in, ops, launch->samples.size(), launch->ordering);
    read_period(in, launch->rule);
    if (!consistent(launch->rule) || launch->samples.size() != launch->rule.samples.size())
      in.bad();
  }
  if (in.good() && in.at_end()) return true;
  *error = path + ": the recorded launch is damaged";
  return false;
}

}  // namespace flydsl::emu::timing
