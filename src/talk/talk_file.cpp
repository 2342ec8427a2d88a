// Files of talks: a magic, a JSON line that says what the rest depends on, the ids, the KV cache
// for them, the drafter's state, and a checksum of all this. Everything is checked before it is
// used, since a checksum shows that a file is complete, but not who wrote it.
#include <array>
#include <bit>
#include <cstring>

#include "core/arithmetic.h"
#include "core/error.h"
#include "core/replaced_file.h"
#include "io/crc32.h"
#include "talk/talk.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagicOfAll = "aerie talk ";  // the magics of all versions begin so
constexpr std::string_view kMagic = "aerie talk 2\n";
constexpr size_t kMaxHeaderBytes = 1 << 16;
constexpr size_t kPieceBytes = 1 << 20;

class FileSink final : public SaveSink {
  public:
    explicit FileSink(const ReplacedFile::Write& write) : write_(write) {}
    void write(std::span<const std::byte> bytes) override {
        crc_ = crc32(crc_, bytes);
        write_({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    void text(std::string_view text) { write(std::as_bytes(std::span(text))); }
    uint32_t crc() const { return crc_; }

  private:
    const ReplacedFile::Write& write_;
    uint32_t crc_ = 0;
};

class FileSource final : public SaveSource {
  public:
    explicit FileSource(const fs::path& path) : name_(path.string()), file_(path) {
        if (file_.size_bytes() < kMagic.size() + sizeof(uint32_t))
            fail("no conversation that aerie stored");
        end_ = file_.size_bytes() - sizeof(uint32_t);
        std::string magic(kMagic.size(), 0);
        read(std::as_writable_bytes(std::span(magic)));
        if (magic != kMagic) fail("no conversation that aerie stored, or one of another version");
        check_sum();
    }
    void read(std::span<std::byte> out) override {
        if (out.size() > left()) fail("shorter than it says");
        file_.read(at_, out);
        at_ += out.size();
    }
    [[noreturn]] void fail(const std::string& why) const override {
        throw Error(name_ + ": " + why);
    }
    size_t left() const { return end_ - at_; }

  private:
    void check_sum() const {
        std::vector<std::byte> piece(std::min(kPieceBytes, end_));
        uint32_t crc = 0, stored = 0;
        for (size_t at = 0; at < end_; at += piece.size()) {
            const std::span part = std::span(piece).first(std::min(piece.size(), end_ - at));
            file_.read(at, part);
            crc = crc32(crc, part);
        }
        file_.read(end_, std::as_writable_bytes(std::span(&stored, 1)));
        if (crc != stored) fail("damaged: its checksum is another one");
    }

    std::string name_;
    InputFile file_;
    size_t at_ = 0, end_ = 0;
};

// The JSON line: everything that the parts of the file depend on.
Json header_of(SharedModel& model) {
    const Identity& own = model.identity();
    return Json::Object{{"model", own.model},
                        {"name", model.files().target.path.filename().string()},
                        {"arithmetic", own.arithmetic},
                        {"draft", own.draft}};
}

std::string text_of(const Json& header, const char* key, const FileSource& file) {
    const Json* value = header.find(key);
    if (!value || !value->string()) file.fail(std::string("its header has no '") + key + "'");
    return *value->string();
}

Json read_header(FileSource& file, const std::string& name) {
    const uint32_t size = file.value<uint32_t>(2, kMaxHeaderBytes, "the header's size");
    std::string text(size, 0);
    file.read(std::as_writable_bytes(std::span(text)));
    return Json::parse(text, name);
}

std::vector<int> read_ids(FileSource& file, const SharedModel& model) {
    const int most = model.context();
    const int count = file.value<int32_t>();
    if (count < 0 || size_t(count) > file.left() / sizeof(int32_t))
        file.fail("shorter than it says");
    if (count > most)
        file.fail("a conversation of " + std::to_string(count) +
                  " tokens; this context has room for " + std::to_string(most));
    std::vector<int> ids;
    for (int i = 0; i < count; ++i)
        ids.push_back(file.value<int32_t>(0, model.files().config.vocab - 1, "an id"));
    return ids;
}

}  // namespace

bool is_talk_file(const fs::path& path) {
    try {
        const InputFile file(path);
        std::string magic(kMagicOfAll.size(), 0);
        if (file.size_bytes() < magic.size()) return false;
        file.read(0, std::as_writable_bytes(std::span(magic)));
        return magic == kMagicOfAll;
    } catch (const Error&) {
        return false;
    }
}

void Talk::save(const fs::path& path) const {
    const ReplacedFile file(path, FileAccess::owner);
    const std::string header = header_of(*model_).dump();
    const std::lock_guard lock(model_->mutex());
    file.commit([&](const ReplacedFile::Write& write) {
        FileSink to(write);
        to.text(kMagic);
        to.value(uint32_t(header.size()));
        to.text(header);
        to.value(int32_t(ids().size()));
        to.write(std::as_bytes(ids()));
        sequence_->save_computed(to);
        sequence_->save_draft(to);
        const uint32_t crc = to.crc();
        to.value(crc);
    });
}

std::unique_ptr<Talk> Talk::load(std::shared_ptr<SharedModel> model, const fs::path& path,
                                 std::string& note) {
    note.clear();
    FileSource file(path);
    const std::string name = path.string();
    const Json header = read_header(file, name);
    const Identity own = model->identity();
    const std::string of = text_of(header, "model", file);
    if (of.find(' ') != own.model.find(' '))
        file.fail(
            "a conversation of an earlier version, which knew models by a part of their bytes "
            "alone");
    if (of != own.model)
        throw Error(
            name + ": a conversation with another model, '" + text_of(header, "name", file) + "'",
            Cause::other_model);
    auto talk = std::make_unique<Talk>(std::move(model));
    const std::vector<int> ids = read_ids(file, *talk->model_);
    const std::lock_guard lock(talk->model_->mutex());
    Sequence& sequence = *talk->sequence_;
    sequence.restore(ids);
    if (const std::string there = text_of(header, "arithmetic", file); there != own.arithmetic) {
        note = name + ": computed on " + there + "; its text is read anew here";
        return talk;
    }
    talk->model_->free_pages(int(KvShape::pages_of(int64_t(ids.size()))), &sequence);
    sequence.load_computed(file);
    if (text_of(header, "draft", file) != own.draft) {
        note = name + ": drafts were made otherwise; its text is read anew where they are wanted";
        return talk;
    }
    sequence.load_draft(file);
    if (file.left() > 0) file.fail("longer than it says");
    return talk;
}

}  // namespace aerie
