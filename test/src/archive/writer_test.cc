// The writer refuses what the reader would, and says what is wrong.
#include <functional>

#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

using archive::ArchiveSpec;

struct Row {
  const char *message;
  std::function<void(ArchiveSpec &)> edit;
};

const Row kRows[] = {
    {"architecture", [](ArchiveSpec &s) { s.arch = "compute_90"; }},
    {"architecture", [](ArchiveSpec &s) { s.arch = "gfx950:xnack-"; }},
    {"listed twice", [](ArchiveSpec &s) { s.kernels[0].name = std::string("a"); }},
    {"is empty", [](ArchiveSpec &s) { s.kernels[0].symbol.clear(); }},
    {"too long", [](ArchiveSpec &s) { s.kernels[0].backend = std::string(256, 'x'); }},
    {"NUL", [](ArchiveSpec &s) { s.kernels[0].op = std::string("a\0b", 3); }},
    {"target id 'gfx942'", [](ArchiveSpec &s) { s.kernels[0].target_id = "gfx942"; }},
    {"work-group", [](ArchiveSpec &s) { s.kernels[0].block[0] = 1025; }},
    {"tile of 0", [](ArchiveSpec &s) { s.kernels[0].tile[0] = 0; }},
    {"wave size", [](ArchiveSpec &s) { s.kernels[0].wave_size = 16; }},
    {"empty code object", [](ArchiveSpec &s) { s.kernels[0].image.clear(); }},
    {"grid rule", [](ArchiveSpec &s) { s.kernels[0].grid_rule = 9; }},
    {"does not exist", [](ArchiveSpec &s) { s.selection[0].candidates[0].kernel = "nobody"; }},
    {"another functional key",
     [](ArchiveSpec &s) { s.selection[0].candidates[0].kernel = std::string("a"); }},
    {"belongs to operator op", [](ArchiveSpec &s) { s.selection[0].op = "other"; }},
    {"1 to 64 candidates", [](ArchiveSpec &s) { s.selection[0].candidates.clear(); }},
    {"1 to 64 candidates",
     [](ArchiveSpec &s) { s.selection[0].candidates.resize(65, s.selection[0].candidates[0]); }},
    {"alignment", [](ArchiveSpec &s) { s.selection[0].candidates[0].align_bytes = 12; }},
    {"empty range", [](ArchiveSpec &s) { s.selection[0].candidates[0].seq_q_min = 101; }},
    {"key is listed twice", [](ArchiveSpec &s) { s.selection.push_back(s.selection[0]); }},
    {"1 to 256 rows", [](ArchiveSpec &s) { s.tuning[0].rows.clear(); }},
    {"1 to 256 rows", [](ArchiveSpec &s) { s.tuning[0].rows.resize(257, s.tuning[0].rows[0]); }},
    {"'nobody' is no candidate", [](ArchiveSpec &s) { s.tuning[0].rows[1].kernel = "nobody"; }},
    {"'c' is no candidate", [](ArchiveSpec &s) { s.tuning[1].op = "other"; }},
    {"alignment", [](ArchiveSpec &s) { s.tuning[0].rows[0].align_bytes = 12; }},
    {"compute units", [](ArchiveSpec &s) { s.tuning[0].rows[0].compute_units = 0; }},
    {"origin", [](ArchiveSpec &s) { s.tuning[0].rows[0].origin.clear(); }},
    {"a key is listed twice", [](ArchiveSpec &s) { s.tuning.push_back(s.tuning[0]); }},
};

TEST(ArchiveWriter, RefusesInconsistentInput) {
  for (const Row &row : kRows) {
    ArchiveSpec spec = tuned_spec();
    row.edit(spec);
    std::vector<unsigned char> file;
    archive::WriteReport report;
    const Status status = archive::build(spec, &file, &report);
    EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_ARGUMENT) << row.message;
    EXPECT_NE(status.message().find(row.message), std::string::npos)
        << row.message << " | " << status.message();
    EXPECT_TRUE(file.empty());
  }
}

TEST(ArchiveWriter, WriteFileReplacesWholeOrNotAtAll) {
  TempFolder folder;
  const std::string path = folder.file("a.fda");
  ASSERT_TRUE(archive::write_file(path, {1, 2, 3}).ok());
  ASSERT_TRUE(archive::write_file(path, {4, 5}).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 2u);
  // A directory in the way: an error, and no temporary file is left behind.
  std::filesystem::create_directories(folder.file("taken/inner"));
  const Status status = archive::write_file(folder.file("taken"), {6});
  EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_IO);
  size_t files = 0;
  for (const auto &item : std::filesystem::directory_iterator(folder.path()))
    files += item.is_regular_file();
  EXPECT_EQ(files, 1u);
  EXPECT_EQ(archive::write_file(folder.file("no/such/folder"), {6}).code(), FLYDSL_AOT_ARCHIVE_IO);
}

}  // namespace
}  // namespace flydsl::test
