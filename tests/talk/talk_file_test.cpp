// Talks in files are read completely or refused.
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "io/crc32.h"
#include "io/damage.h"
#include "talks.h"

namespace aerie::test {
namespace {

std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

class TalkFile : public testing::Test {
  protected:
    TalkFile() {
        answer(talk_, request_of(ids_of(*model_, "Once upon a time there was a"), 40));
        talk_.save(file_);
    }
    // The error message of the refusal, one line; empty if the file was read.
    std::string refused() const {
        std::string note;
        try {
            Talk::load(model_, file_, note);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    void put(const std::string& bytes) const {
        std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
    }

    const TestFolder folder_;
    const std::filesystem::path file_ = folder_.path() / "talk";
    std::shared_ptr<SharedModel> model_ = shared_model(draft_options("eagle2"));
    Talk talk_{model_};
};

TEST_F(TalkFile, CutShortIsRefused) {
    const std::string whole = bytes_of(file_);
    ASSERT_GT(whole.size(), 50'000u);
    for (size_t size = 0; size < whole.size(); size += 4096) {
        put(whole.substr(0, size));
        EXPECT_NE(refused(), "") << size;
    }
    put(whole.substr(0, whole.size() - 1));
    EXPECT_NE(refused(), "");
    put(whole + '\0');
    EXPECT_NE(refused(), "");
    put(whole);
    EXPECT_EQ(refused(), "");
}

TEST_F(TalkFile, WithAFlippedByteIsRefused) {
    const std::string whole = bytes_of(file_);
    int tried = 0;
    for (size_t at = 0; at < whole.size(); at += at < 600 ? 1 : 1009) {
        std::string bad = whole;
        bad[at] = char(bad[at] ^ (1 << at % 8));
        put(bad);
        EXPECT_NE(refused(), "") << at;
        ++tried;
    }
    std::printf("%d flipped bytes of %zu\n", tried, whole.size());
    EXPECT_EQ(refused().find('\n'), std::string::npos);
}

// A checksum does not prove where a file comes from: lengths and counts in it are checked, and its
// contents may be anything.
TEST_F(TalkFile, WithAnyContentIsReadOrRefused) {
    const std::string whole = bytes_of(file_);
    const size_t end = whole.size() - sizeof(uint32_t);
    const std::string_view magic = "aerie talk 2\n";
    int was_refused = 0, was_read = 0;
    for (size_t at = magic.size(); at < end; at += at < 1200 || at + 600 > end ? 1 : 4093) {
        for (const int value : {0x00, 0x7F, 0xFF}) {
            std::string bad = whole;
            bad[at] = char(value);
            const uint32_t crc = crc32(0, std::as_bytes(std::span(bad)).first(end));
            std::memcpy(bad.data() + end, &crc, sizeof(crc));
            put(bad);
            const std::string line = refused();
            EXPECT_EQ(line.find('\n'), std::string::npos) << line;
            ++(line.empty() ? was_read : was_refused);
        }
    }
    std::printf("%d refused, %d read\n", was_refused, was_read);
    EXPECT_GT(was_refused, 500);
    EXPECT_GT(was_read, 100);
}

std::string load_error(const LoadOptions& options, const std::filesystem::path& file) {
    std::string note;
    return error_of([&] { Talk::load(std::make_shared<SharedModel>(options), file, note); });
}

// The same model with one bit of one value changed: the last value, the first one, and several in
// between.
TEST_F(TalkFile, OfAnotherModelIsRefused) {
    LoadOptions options = talk_options(draft_options("none"));
    options.cache = folder_.path() / "cache";
    std::filesystem::copy(models_dir() / "aerie-tiny", folder_.path() / "other");
    const auto weights = folder_.path() / "other" / "model.safetensors";
    const std::string whole = bytes_of(weights);
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof(header));
    options.model = folder_.path() / "other";
    EXPECT_EQ(load_error(options, file_), "") << "the same bytes elsewhere";
    const size_t first = sizeof(header) + header, count = whole.size() - first;
    for (const size_t at : {count - 1, size_t(0), count / 2, count / 3, count - 5000, count / 7}) {
        std::string bytes = whole;
        bytes[first + at] = char(bytes[first + at] ^ 1);
        std::ofstream(weights, std::ios::binary | std::ios::trunc) << bytes;
        EXPECT_NE(load_error(options, file_).find("another model, 'aerie-tiny'"), std::string::npos)
            << at;
    }
    std::ofstream(weights, std::ios::binary | std::ios::trunc) << whole;
    EXPECT_EQ(load_error(options, file_), "");
}

TEST_F(TalkFile, OfAnEarlierVersionIsRefused) {
    const std::string whole = bytes_of(file_);
    std::string old = whole;
    const size_t model = old.find("\"model\":\"") + 9;
    ASSERT_LT(model, old.size());
    old.replace(model, 32, std::string(16, 'a') + std::string(1, ' ') + std::string(15, 'b'));
    const size_t end = old.size() - sizeof(uint32_t);
    const uint32_t crc = crc32(0, std::as_bytes(std::span(old)).first(end));
    std::memcpy(old.data() + end, &crc, sizeof(crc));
    put(old);
    EXPECT_NE(refused().find("an earlier version"), std::string::npos) << refused();
}

// A conversation is private to its user.
TEST_F(TalkFile, IsReadableForItsOwnerAlone) {
    namespace fs = std::filesystem;
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0600));
    fs::permissions(file_, fs::perms(0640));
    talk_.save(file_);
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0640)) << "as the user has set it";
}

// The ids are read anew, so the text continues as it would have.
TEST_F(TalkFile, OfOtherTypesOrDraftsIsReadAnew) {
    const Request more = request_of(copy_of(talk_.ids()), 30);
    for (const bool other_cache : {true, false}) {
        LoadOptions options = talk_options(draft_options(other_cache ? "eagle2" : "eagle1"));
        if (other_cache) options.kv = DType::F32;
        const auto model = std::make_shared<SharedModel>(options);
        std::string note;
        const auto talk = Talk::load(model, file_, note);
        EXPECT_NE(note.find("read anew"), std::string::npos) << note;
        EXPECT_EQ(copy_of(talk->ids()), more.prompt);
        Talk fresh(model);
        expect_same(answer(*talk, more), answer(fresh, more));
    }
}

TEST_F(TalkFile, WithoutDraftsKeepsWhatIsComputed) {
    LoadOptions options = talk_options(draft_options("none"));
    const auto model = std::make_shared<SharedModel>(options);
    std::string note;
    const auto talk = Talk::load(model, file_, note);
    Request more = request_of(copy_of(talk_.ids()), 30);
    const GenerationResult got = answer(*talk, more);
    EXPECT_EQ(got.reused, int(more.prompt.size()) - 1);
    EXPECT_EQ(got.ids, answer(talk_, more).ids);
}

TEST_F(TalkFile, TooLongForThisContextIsRefused) {
    LoadOptions options = talk_options(draft_options("eagle2"));
    options.context = 40;
    std::string note;
    EXPECT_THROW(Talk::load(std::make_shared<SharedModel>(options), file_, note), Error);
}

// The disk is full after that many bytes: the old file stays.
TEST_F(TalkFile, StaysWhereTheDiskIsFull) {
    const std::string old = bytes_of(file_);
    answer(talk_, request_of(copy_of(talk_.ids()), 40));
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    for (const rlim_t bytes : {0, 10, 5000, 60'000}) {
        rlimit limit = before;
        limit.rlim_cur = bytes;
        setrlimit(RLIMIT_FSIZE, &limit);
        EXPECT_THROW(talk_.save(file_), Error);
        setrlimit(RLIMIT_FSIZE, &before);
        EXPECT_EQ(bytes_of(file_), old);
    }
    const auto entries = std::filesystem::directory_iterator(folder_.path());
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
    talk_.save(file_);
    EXPECT_EQ(refused(), "");
}

}  // namespace
}  // namespace aerie::test
