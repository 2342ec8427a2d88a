// A model is identified by a hash of all its bytes, which are read once.
#include "talk/weights_hash.h"

#include <chrono>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class WeightsHash : public testing::Test {
  protected:
    WeightsHash() {
        fs::copy(models_dir() / "aerie-tiny", folder_.path() / "model");
        bytes_ = read_text(weights_, 1 << 30);
        age(10s);
    }
    void age(std::chrono::seconds seconds) const {
        fs::last_write_time(weights_, fs::file_time_type::clock::now() - seconds);
    }
    // Changes one byte in the middle of the file and keeps the file's time.
    void change_a_byte() {
        const auto time = fs::last_write_time(weights_);
        bytes_[bytes_.size() / 2] = char(bytes_[bytes_.size() / 2] ^ 1);
        std::fstream(weights_, std::ios::binary | std::ios::in | std::ios::out) << bytes_;
        fs::last_write_time(weights_, time);
    }
    std::string hash() const { return weights_hash(open_model(folder_.path() / "model"), cache_); }
    std::string hash_without_cache() const {
        return weights_hash(open_model(folder_.path() / "model"), {});
    }

    const TestFolder folder_;
    const fs::path weights_ = folder_.path() / "model" / "model.safetensors";
    const fs::path cache_ = folder_.path() / "cache";
    std::string bytes_;
};

TEST_F(WeightsHash, IsOfAllBytesAndOfNothingElse) {
    const std::string before = hash_without_cache();
    EXPECT_EQ(before.size(), 32u);
    EXPECT_EQ(hash_without_cache(), before);
    change_a_byte();
    EXPECT_NE(hash_without_cache(), before);
    change_a_byte();
    EXPECT_EQ(hash_without_cache(), before);
    age(100s);
    EXPECT_EQ(hash_without_cache(), before);
    EXPECT_EQ(weights_hash(open_model(models_dir() / "aerie-tiny"), {}), before);
    EXPECT_FALSE(fs::exists(cache_));
}

// A change that keeps the file's time is not noticed, which shows that the bytes are not read
// again.
TEST_F(WeightsHash, IsKeptByTheSizeAndTheTimeOfTheFile) {
    const std::string before = hash();
    change_a_byte();
    EXPECT_EQ(hash(), before);
    age(5s);
    const std::string after = hash();
    EXPECT_NE(after, before);
    EXPECT_EQ(after, hash_without_cache());
    EXPECT_EQ(hash(), after);
}

// A later change within the clock's resolution would leave the same file time.
TEST_F(WeightsHash, OfAFileThatWasJustWrittenIsNotKept) {
    age(0s);
    hash();
    EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(WeightsHash, DamagedCachesAreNotRead) {
    const std::string before = hash();
    const fs::path file = fs::directory_iterator(cache_)->path();
    const std::string kept = read_text(file, 1 << 16);
    ASSERT_NE(kept.find(before), std::string::npos);
    std::string other = kept;
    other[kept.find(before)] = 'z';
    for (const std::string& bad : {std::string(), kept.substr(1), kept.substr(0, kept.size() - 1),
                                   kept + kept, other, std::string(1 << 21, 'x')}) {
        std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
        EXPECT_EQ(hash(), before);
        EXPECT_EQ(read_text(file, 1 << 16), kept) << "mended";
    }
    fs::remove_all(cache_);
    folder_.write("cache", "a file in its place");
    EXPECT_EQ(hash(), before);
}

// The weights in memory are then of a different file than a new read would find.
TEST_F(WeightsHash, OfAFileThatHasChangedIsAnError) {
    const ModelSource source = open_model(folder_.path() / "model");
    const std::string before = weights_hash(source, cache_);
    fs::rename(weights_, folder_.path() / "old");
    fs::copy(folder_.path() / "old", weights_);
    EXPECT_EQ(weights_hash(source, cache_), before) << "the open file is the one that it was";
    fs::resize_file(folder_.path() / "old", bytes_.size() + 1);
    EXPECT_NE(error_of([&] { weights_hash(source, cache_); }).find("load the model again"),
              std::string::npos);
}

TEST_F(WeightsHash, OfGgufFilesIsKeptToo) {
    const fs::path split = models_dir().parent_path() / "tests" / "data" / "real" / "gguf";
    for (const auto& entry : fs::directory_iterator(split))
        fs::copy(entry.path(), folder_.path() / entry.path().filename());
    for (const auto& entry : fs::directory_iterator(folder_.path()))
        if (entry.is_regular_file())
            fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - 10s);
    const fs::path first = folder_.path() / "qwen3-Q4_0-split-00001-of-00003.gguf";
    const std::string before = weights_hash(open_model(first), cache_);
    EXPECT_EQ(weights_hash(open_model(first), cache_), before);
    EXPECT_NE(weights_hash(open_model(folder_.path() / "qwen3-Q3_K_M.gguf"), cache_), before);
    // The times of all parts of a split model count.
    const fs::path last = folder_.path() / "qwen3-Q4_0-split-00003-of-00003.gguf";
    std::string bytes = read_text(last, 1 << 30);
    bytes.back() = char(bytes.back() ^ 1);
    std::fstream(last, std::ios::binary | std::ios::in | std::ios::out) << bytes;
    EXPECT_NE(weights_hash(open_model(first), cache_), before);
}

}  // namespace
}  // namespace aerie::test
