#include "src/jit/sources.h"

#include <zstd.h>

#include <charconv>

namespace flydsl::jit {
namespace {

constexpr std::string_view kTable = "recipes.tsv";
constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr const char *kBackend = "jit";

Status broken(const char *what) {
  return error(FLYDSL_AOT_INTERNAL, "the sources in this library: %s", what);
}

// The part up to `end`, which goes from `rest` with it.
std::string_view take(std::string_view *rest, char end) {
  const size_t at = rest->find(end);
  const std::string_view part = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return part;
}

// Fields of a row, one after another; remembers whether all were what was asked for.
class Row {
 public:
  explicit Row(std::string_view line) : rest_(line) {}
  std::string_view text() {
    const std::string_view field = take(&rest_, '\t');
    good_ &= !field.empty();
    return field;
  }
  template <class Number>
  void number(Number *value) {
    std::string_view field = text();
    const bool hexadecimal = field.substr(0, 2) == "0x";
    if (hexadecimal) field.remove_prefix(2);
    const char *end = field.data() + field.size();
    const auto [stop, failed] = std::from_chars(field.data(), end, *value, hexadecimal ? 16 : 10);
    good_ &= failed == std::errc() && stop == end;
  }
  bool good() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

bool lists(std::string_view archs, std::string_view arch) {
  while (!archs.empty())
    if (take(&archs, ',') == arch) return true;
  return false;
}

// Names of the files that a text includes.
std::vector<std::string_view> included(std::string_view text) {
  constexpr std::string_view kInclude = "#include \"";
  std::vector<std::string_view> names;
  while (!text.empty()) {
    std::string_view line = take(&text, '\n');
    if (line.substr(0, kInclude.size()) != kInclude) continue;
    line.remove_prefix(kInclude.size());
    names.push_back(line.substr(0, line.find('"')));
  }
  return names;
}

}  // namespace

Status Sources::open(std::span<const unsigned char> frame, std::unique_ptr<Sources> *sources) {
  const auto bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (bytes > kMostBytes) return broken("their size is not known, or above the cap");
  auto result = std::make_unique<Sources>();
  result->text_.resize(bytes);
  const size_t got =
      ZSTD_decompress(result->text_.data(), result->text_.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) || got != bytes) return broken("not one zstd frame");
  FLYDSL_RETURN_IF_ERROR(result->split());
  *sources = std::move(result);
  return {};
}

Status Sources::split() {
  std::string_view table, rest = text_;
  while (!rest.empty()) {
    Row head(take(&rest, '\n'));
    const std::string_view name = head.text();
    size_t bytes = 0;
    head.number(&bytes);
    if (!head.good() || bytes > rest.size()) return broken("a file has no name or size");
    const std::string_view text = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    if (name == kTable)
      table = text;
    else
      files_[name] = text;
  }
  return read_table(table);
}

Status Sources::read_table(std::string_view table) {
  take(&table, '\n');  // names of the columns
  while (!table.empty()) {
    Row row(take(&table, '\n'));
    Recipe recipe;
    archive::Addition &addition = recipe.addition;
    archive::Entry &entry = addition.entry;
    archive::Candidate &fits = addition.fits;
    recipe.archs = row.text();
    addition.op = row.text();
    addition.name = addition.symbol = row.text();
    addition.backend = kBackend;
    recipe.source = row.text();
    const std::string_view rule = row.text();
    entry.grid_rule =
        rule == "persistent" ? archive::kGridRulePersistent : archive::kGridRuleLinearTiles;
    row.number(&entry.kernarg_layout_id);
    row.number(&entry.kernarg_bytes);
    for (uint32_t &size : entry.block) row.number(&size);
    for (uint32_t &size : entry.tile) row.number(&size);
    row.number(&entry.lds_dynamic_bytes);
    row.number(&entry.wave_size);
    row.number(&entry.functional_key);
    row.number(&fits.align_bytes);
    row.number(&fits.seq_q_min);
    row.number(&fits.seq_q_max);
    row.number(&fits.seq_k_min);
    row.number(&fits.seq_k_max);
    if (!row.good() || files_.count(recipe.source) == 0)
      return broken("a row of the table of instances");
    recipes_.push_back(recipe);
  }
  return {};
}

std::vector<archive::Addition> Sources::instances(const std::string &arch) const {
  std::vector<archive::Addition> result;
  for (const Recipe &recipe : recipes_) {
    if (!lists(recipe.archs, arch)) continue;
    result.push_back(recipe.addition);
    // The list's own copy of the name, which outlives the caller's.
    result.back().target_id = recipe.archs.substr(recipe.archs.find(arch), arch.size());
  }
  return result;
}

std::vector<Source> Sources::of(std::string_view instance, std::string_view arch) const {
  std::vector<Source> result;
  for (const Recipe &recipe : recipes_) {
    if (recipe.addition.name != instance || !lists(recipe.archs, arch)) continue;
    std::map<std::string_view, std::string_view> headers;
    std::vector<std::string_view> open = {recipe.source};
    while (!open.empty()) {
      const std::string_view text = files_.at(open.back());
      open.pop_back();
      for (const std::string_view name : included(text))
        if (const auto file = files_.find(name);
            file != files_.end() && headers.insert(*file).second)
          open.push_back(name);
    }
    result.push_back({recipe.source, files_.at(recipe.source)});
    for (const auto &[name, text] : headers) result.push_back({name, text});
    return result;
  }
  return result;
}

}  // namespace flydsl::jit
