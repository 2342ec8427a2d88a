// Files of compiled pipelines: damaged and foreign files count as absent and are replaced, and it
// is no error if a file cannot be read or written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/backend.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/pipeline_file.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeaderBytes = 24;

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void replace(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

class PipelineFile : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("aerie_pipelines_" + std::to_string(getpid()));
        fs::remove_all(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path folder_;
};

TEST_F(PipelineFile, KeepsWhatWasWritten) {
    const std::string path = (folder_ / "sub" / "file").string();
    for (const std::vector<char>& data :
         {std::vector<char>{'a', 0, 'b'}, std::vector<char>(5000)}) {
        write_pipeline_file(path, data);
        EXPECT_EQ(read_pipeline_file(path), data);
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "sub"), {}), 1);
}

TEST_F(PipelineFile, CountsAsNoneWhereAnyByteIsWrong) {
    const std::string path = (folder_ / "file").string();
    write_pipeline_file(path, std::vector<char>(40, 'x'));
    const std::string sound = contents(path);
    for (size_t i = 0; i < sound.size(); ++i) {
        std::string damaged = sound;
        damaged[i] = char(damaged[i] ^ 0x20);
        replace(path, damaged);
        EXPECT_TRUE(read_pipeline_file(path).empty()) << i;
        replace(path, sound.substr(0, i));
        EXPECT_TRUE(read_pipeline_file(path).empty()) << i;
    }
    replace(path, sound + "x");
    EXPECT_TRUE(read_pipeline_file(path).empty());
    fs::remove(path);
    EXPECT_TRUE(read_pipeline_file(path).empty());
    EXPECT_TRUE(read_pipeline_file(folder_.string()).empty());
}

class PipelineCache : public PipelineFile {
  protected:
    void SetUp() override {
        if (!has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        PipelineFile::SetUp();
        const auto instance = Instance::get();
        const Traits& traits = instance->devices()[test_device_index(*instance)].traits;
        path_ = pipeline_file_path(folder_.string(), traits);
    }

    // Opens the device, runs an op, closes it. Returns whether it found a cache.
    bool run() {
        DeviceChoices choices;
        choices.cache = folder_.string();
        const auto backend = open_test_device(choices);
        const Buffer memory = backend->allocate(128);
        const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        const Tensor a{memory.get(), 0, DType::F32, 1, 16, 16};
        const Tensor b{memory.get(), 64, DType::F32, 1, 16, 16};
        backend->write(a, ones);
        backend->run(Add{b, a, a});
        float sums[16] = {};
        backend->read(b, sums);
        EXPECT_EQ(sums[15], 2);
        return static_cast<VulkanBackend&>(*backend).queue().pipelines().cached();
    }

    void expect_rebuilt(const std::string& how) {
        EXPECT_FALSE(run()) << how;
        EXPECT_TRUE(run()) << how;
    }

    fs::path path_;
};

TEST_F(PipelineCache, IsUsedBySecondOpen) {
    EXPECT_FALSE(run());
    EXPECT_FALSE(read_pipeline_file(path_.string()).empty());
    EXPECT_TRUE(run());
}

// A process that is killed leaves a cache too.
TEST_F(PipelineCache, IsWrittenBeforeTheDeviceIsClosed) {
    DeviceChoices choices;
    choices.cache = folder_.string();
    for (const double quiet : {1e9, 0.0}) {
        choices.quiet_seconds = quiet;
        fs::remove_all(folder_);
        const auto backend = open_test_device(choices);
        const Buffer memory = backend->allocate(256);
        const Tensor x = dense(memory.get(), DType::F32, 1, 16);
        backend->run(Add{x, x, x});
        backend->sync();
        EXPECT_EQ(read_pipeline_file(path_.string()).empty(), quiet != 0);
    }
}

TEST_F(PipelineCache, IsRebuiltWhereDamaged) {
    run();
    const std::string sound = contents(path_);
    ASSERT_GT(sound.size(), kHeaderBytes);
    for (size_t length : {size_t(0), size_t(1), kHeaderBytes, sound.size() - 1}) {
        replace(path_, sound.substr(0, length));
        expect_rebuilt("cut to " + std::to_string(length));
    }
    for (size_t at : {size_t(0), size_t(8), size_t(16), kHeaderBytes, sound.size() - 1}) {
        std::string damaged = sound;
        damaged[at] = char(~damaged[at]);
        replace(path_, damaged);
        expect_rebuilt("byte " + std::to_string(at));
    }
    replace(path_, std::string(100000, 'x'));
    expect_rebuilt("foreign");
}

// The file is sound, but its data is not this driver's: the driver has to look itself.
TEST_F(PipelineCache, OfAnotherDriverIsReplaced) {
    run();
    std::vector<char> data = read_pipeline_file(path_.string());
    ASSERT_GE(data.size(), 32u);
    for (size_t i = 16; i < 32; ++i) data[i] = char(~data[i]);  // the UUID of Vulkan's own header
    write_pipeline_file(path_.string(), data);
    run();
    EXPECT_NE(read_pipeline_file(path_.string()), data);
    for (size_t bytes : {1, 15, 31}) {
        write_pipeline_file(path_.string(), std::vector<char>(bytes, 'x'));
        run();
        EXPECT_GE(read_pipeline_file(path_.string()).size(), 32u);
    }
}

TEST_F(PipelineCache, ThatCannotBeWrittenIsNoError) {
    replace(folder_, "a file where the folder should be");
    EXPECT_FALSE(run());
    EXPECT_FALSE(run());
    fs::remove(folder_);
    fs::create_directories(path_);  // a folder where the file should be
    EXPECT_FALSE(run());
    EXPECT_TRUE(fs::is_directory(path_));
}

}  // namespace
}  // namespace aerie::vulkan
