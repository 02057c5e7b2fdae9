// Which code objects run on which device, by its target id, in a call on the emulator: its devices are renamed, and so are the
// architecture and the objects of an archive that holds the build's own kernel. (Public reports: B52.)
#include <optional>

#include "flydsl_aot_generated/abi.h"
#include "src/archive/reader.h"
#include "test/src/archive/archive_fixture.h"
#include "test/support/between_handle.h"
#include "test/support/client_stream.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

constexpr const char *kOperator = "topk_softmax";

class Targets : public BetweenTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(BetweenTest::SetUp());
    memory_.open({"emulator", "", ""});
    const auto &lines = operator_problems();
    const auto line = std::find_if(lines.begin(), lines.end(), [](const ProblemLine &one) {
      return std::string(one.op) == kOperator;
    });
    ASSERT_NE(line, lines.end());
    problem_ = std::make_unique<DeviceProblem>(memory_, *line);
    ASSERT_EQ(problem_->launch(memory_.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    right_ = problem_->results();
    problem_->poison();
  }
  // The archive of `arch`, with the kernels of one operator as if built for those target ids, best first.
  void make_archive(const std::string &arch, const std::vector<std::string> &objects) {
    flydsl_aot_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(flydsl_aot_get_info(memory_.get(), &info), FLYDSL_AOT_OK);
    std::unique_ptr<archive::Archive> real;
    ASSERT_TRUE(archive::Archive::open(info.archive_path, FLYDSL_AOT_GENERATED_ABI_ID, &real).ok());
    archive::ArchiveSpec spec;
    spec.arch = arch;
    spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
    spec.library_version = real->library_version();
    for (uint32_t index = 0; index < real->entries().size(); ++index) {
      const archive::Entry &entry = real->entries()[index];
      if (real->string(entry.op) != std::string(kOperator)) continue;
      archive::SelectionSpec selection{kOperator, entry.functional_key, {}};
      for (const std::string &target : objects) {
        archive::KernelSpec kernel;
        kernel.name = std::string(real->string(entry.name)) + " of " + target;
        kernel.op = kOperator;
        kernel.backend = real->string(entry.backend);
        kernel.target_id = target;
        kernel.symbol = real->string(entry.symbol);
        kernel.grid_rule = entry.grid_rule;
        kernel.kernarg_layout_id = entry.kernarg_layout_id;
        kernel.kernarg_bytes = entry.kernarg_bytes;
        kernel.wave_size = entry.wave_size;
        std::copy_n(entry.block, 3, kernel.block);
        std::copy_n(entry.tile, 3, kernel.tile);
        kernel.lds_dynamic_bytes = entry.lds_dynamic_bytes;
        kernel.functional_key = entry.functional_key;
        ASSERT_TRUE(real->read(index, &kernel.image).ok());
        for (const archive::Candidate &fits : real->find(kOperator, entry.functional_key)) {
          if (fits.entry == index)
            selection.candidates.push_back({kernel.name, fits.align_bytes, fits.seq_q_min,
                                            fits.seq_q_max, fits.seq_k_min, fits.seq_k_max});
        }
        spec.kernels.push_back(std::move(kernel));
      }
      auto same = std::find_if(spec.selection.begin(), spec.selection.end(), [&](const auto &one) {
        return one.functional_key == selection.functional_key;
      });
      if (same == spec.selection.end())
        spec.selection.push_back(selection);
      else
        same->candidates.insert(same->candidates.end(), selection.candidates.begin(),
                                selection.candidates.end());
    }
    ASSERT_FALSE(spec.kernels.empty());
    write_bytes(folder_.file("flydsl_aot." + arch + ".fda"), build_or_die(spec));
  }

  Handle open(flydsl_aot_status expected = FLYDSL_AOT_OK) {
    flydsl_aot_open_options options{};
    options.struct_size = sizeof options;
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = HIP_BETWEEN;
    options.archive_path = folder_.path().c_str();
    flydsl_aot_handle *handle = nullptr;
    EXPECT_EQ(flydsl_aot_open(&options, &handle), expected) << flydsl_aot_last_error();
    return Handle(handle, flydsl_aot_close);
  }
  std::string kernel(flydsl_aot_handle *handle) {
    flydsl_aot_query_result result{};
    result.struct_size = sizeof result;
    EXPECT_EQ(problem_->query(handle, &result), result.status);
    return result.kernel;
  }
  void expect_refused(flydsl_aot_handle *handle, flydsl_aot_status expected,
                      const std::string &part) {
    for (const flydsl_aot_status status :
         {problem_->launch(handle), problem_->prefetch(handle), problem_->query(handle)}) {
      EXPECT_EQ(status, expected);
      EXPECT_NE(std::string(flydsl_aot_last_error()).find(part), std::string::npos)
          << flydsl_aot_last_error();
    }
    EXPECT_EQ(between_->peek_at_last_error(), 0);
    EXPECT_EQ(between_->calls[kModuleLoadData], 0);
    EXPECT_TRUE(problem_->outputs_are_poison());
  }

  TempFolder folder_;
  tools::LibraryHandle memory_;
  std::unique_ptr<DeviceProblem> problem_;
  std::vector<std::vector<uint8_t>> right_;
};

TEST_F(Targets, B52_TheBaseNameSelectsAndWhatAnObjectStatesMustBeSo) {
  const struct {
    const char *device, *arch;
    std::vector<std::string> objects;
    const char *taken;  // the target id of the object that runs; null: none, for the reason
    const char *reason = "";
  } rows[] = {
      {"gfx950:sramecc+:xnack-", "gfx950", {"gfx950"}, "gfx950"},
      {"gfx950:xnack-:sramecc+", "gfx950", {"gfx950"}, "gfx950"},
      {"gfx950", "gfx950", {"gfx950"}, "gfx950"},
      {"gfx942:sramecc+:xnack-", "gfx942", {"gfx942"}, "gfx942"},
      {"gfx90a:sramecc+:xnack+", "gfx90a", {"gfx90a"}, "gfx90a"},
      {"gfx90c", "gfx90c", {"gfx90c"}, "gfx90c"},
      {"gfx90c:xnack-", "gfx90c", {"gfx90c"}, "gfx90c"},
      {"gfx1100", "gfx1100", {"gfx1100"}, "gfx1100"},
      // Features that the object states, in either order.
      {"gfx950:sramecc+:xnack-", "gfx950", {"gfx950:sramecc+:xnack-"}, "gfx950:sramecc+:xnack-"},
      {"gfx950:sramecc+:xnack-", "gfx950", {"gfx950:xnack-:sramecc+"}, "gfx950:xnack-:sramecc+"},
      {"gfx950:xnack-:sramecc+", "gfx950", {"gfx950:sramecc+"}, "gfx950:sramecc+"},
      {"gfx90a:sramecc+:xnack+", "gfx90a", {"gfx90a:xnack-", "gfx90a:xnack+"}, "gfx90a:xnack+"},
      {"gfx90a:sramecc+:xnack-", "gfx90a", {"gfx90a:xnack+", "gfx90a:xnack-"}, "gfx90a:xnack-"},
      {"gfx90a:sramecc-:xnack+", "gfx90a", {"gfx90a:sramecc+", "gfx90a"}, "gfx90a"},
      {"gfx90a:sramecc+:xnack+",
       "gfx90a",
       {"gfx90a:xnack-"},
       nullptr,
       "needs xnack off, the device has it on"},
      {"gfx90a:xnack+:sramecc+",
       "gfx90a",
       {"gfx90a:sramecc+:xnack-"},
       nullptr,
       "needs xnack off, the device has it on"},
      {"gfx950:sramecc+:xnack-",
       "gfx950",
       {"gfx950:sramecc-"},
       nullptr,
       "needs sramecc off, the device has it on"},
      {"gfx950",
       "gfx950",
       {"gfx950:xnack-"},
       nullptr,
       "needs xnack off, the device has it unstated"},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(std::string(row.device) + " with objects for " + row.objects.front());
    make_archive(row.arch, row.objects);
    between_->reset();
    between_->target_id[0] = between_->target_id[1] = row.device;
    const Handle handle = open();
    ASSERT_NE(handle, nullptr);
    flydsl_aot_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(flydsl_aot_get_info(handle.get(), &info), FLYDSL_AOT_OK);
    EXPECT_STREQ(info.arch, row.arch);
    EXPECT_STREQ(info.target_id, row.device);
    if (!row.taken) {
      expect_refused(handle.get(), FLYDSL_AOT_NO_KERNEL, row.reason);
      continue;
    }
    const std::string ending = std::string(" of ") + row.taken, name = kernel(handle.get());
    EXPECT_EQ(name.substr(name.size() - std::min(name.size(), ending.size())), ending);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(problem_->results(), right_);
      problem_->poison();
    }
  }
}

TEST_F(Targets, B52_UnknownNamesAreSaid) {
  make_archive("gfx950", {"gfx950"});
  make_archive("gfx90a", {"gfx90a"});
  const struct {
    const char *device, *part;
  } rows[] = {
      {"gfx9999", "no kernel archive for gfx9999: "},
      {"gfx9999:sramecc+:xnack-", "no kernel archive for gfx9999: "},
      {"gfx90c", "no kernel archive for gfx90c: "},
      {"gfx1100", "there are archives for: gfx90a, gfx950"},
      {"gfx942:sramecc+:xnack-", "no kernel archive for gfx942: "},
      {"", "has target id '', which is not an AMD GPU's"},
      {"gfx", "has target id 'gfx'"},
      {"gfx950:", "has target id 'gfx950:'"},
      {"gfx950:xnack", "has target id 'gfx950:xnack'"},
      {"gfx950:xnack+:xnack-", "has target id 'gfx950:xnack+:xnack-'"},
      {"../gfx950", "has target id '../gfx950'"},
  };
  for (const auto &[device, part] : rows) {
    SCOPED_TRACE(device);
    between_->reset();
    between_->target_id[0] = between_->target_id[1] = device;
    EXPECT_EQ(open(FLYDSL_AOT_UNSUPPORTED_ARCH), nullptr);
    EXPECT_NE(std::string(flydsl_aot_last_error()).find(part), std::string::npos)
        << flydsl_aot_last_error();
    EXPECT_EQ(between_->peek_at_last_error(), 0);
  }
}

// A device beside the one that the handle was opened on: only calls for it are refused.
TEST_F(Targets, B52_AnotherDeviceOfTheProcess) {
  make_archive("gfx950", {"gfx950:xnack-"});
  EXPECT_HIP(hipSuccess, hipSetDevice(1));
  const Stream second;
  EXPECT_HIP(hipSuccess, hipSetDevice(0));
  const struct {
    const char *device;
    flydsl_aot_status status;
    const char *part;
  } rows[] = {
      {"gfx950:sramecc+:xnack-", FLYDSL_AOT_OK, ""},
      {"gfx950:xnack-:sramecc-", FLYDSL_AOT_OK, ""},
      {"gfx950:sramecc+:xnack+", FLYDSL_AOT_NO_KERNEL, "needs xnack off, the device has it on"},
      {"gfx9999:xnack-", FLYDSL_AOT_UNSUPPORTED_ARCH, "device 1 is gfx9999:xnack-;"},
      {"gfx90c", FLYDSL_AOT_UNSUPPORTED_ARCH, "device 1 is gfx90c;"},
      {"", FLYDSL_AOT_UNSUPPORTED_ARCH, "device 1 has an empty target id;"},
  };
  for (const auto &[device, status, part] : rows) {
    SCOPED_TRACE(device);
    between_->reset();
    between_->target_id[0] = "gfx950:sramecc+:xnack-";
    between_->target_id[1] = device;
    const Handle handle = open();
    ASSERT_NE(handle, nullptr);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(problem_->results(), right_);
      problem_->poison();
      EXPECT_EQ(problem_->launch(handle.get(), second), status) << flydsl_aot_last_error();
      EXPECT_EQ(between_->peek_at_last_error(), 0);
      EXPECT_HIP(hipSuccess, hipStreamSynchronize(second));
      if (status == FLYDSL_AOT_OK) {
        EXPECT_EQ(problem_->results(), right_);
        problem_->poison();
        continue;
      }
      EXPECT_NE(std::string(flydsl_aot_last_error()).find(part), std::string::npos)
          << flydsl_aot_last_error();
      EXPECT_TRUE(problem_->outputs_are_poison());
    }
  }
}

}  // namespace
}  // namespace flydsl::test
