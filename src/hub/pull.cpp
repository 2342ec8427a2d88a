#include "hub/pull.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "core/ascii.h"
#include "core/error.h"
#include "core/replaced_file.h"
#include "core/sha256.h"
#include "hub/http.h"
#include "io/model_folder.h"

namespace aerie::hub {

namespace fs = std::filesystem;

namespace {

// Failures one after the other, without a byte between; fewer as long as no file has begun, when
// the reason is rather an address or a network that is not there.
constexpr int kMostFailures = 5, kMostFirstFailures = 2;
constexpr int kMostWaitSeconds = 600;
constexpr std::chrono::milliseconds kFirstPause{500};

// A descriptor that is closed in the end.
class OpenFile {
  public:
    OpenFile(const fs::path& path, int flags) : path_(path) {
        file_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
        if (file_ < 0) fail();
    }
    ~OpenFile() { ::close(file_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int get() const { return file_; }
    [[noreturn]] void fail() const { throw Error(path_.string() + ": " + std::strerror(errno)); }

  private:
    fs::path path_;
    int file_;
};

// The download of one file, as far as it has come.
class Download {
  public:
    Download(const fs::path& path, const RepositoryFile& file)
        : path_(path), file_(file), out_(path, O_RDWR | O_CREAT) {
        if (::flock(out_.get(), LOCK_EX | LOCK_NB) != 0)
            throw Error(path.string() + ": another program downloads it");
        read_what_is_there();
    }

    uint64_t bytes() const { return bytes_; }
    bool is_whole() const { return bytes_ == file_.size_bytes; }

    void add(std::string_view piece) {
        if (piece.size() > file_.size_bytes - bytes_)
            throw Error(file_.path + ": the server sends more than the " +
                        std::to_string(file_.size_bytes) + " bytes that the file has");
        for (size_t written = 0; written < piece.size();) {
            const ssize_t count = ::pwrite(out_.get(), piece.data() + written,
                                           piece.size() - written, off_t(bytes_ + written));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) out_.fail();
            written += size_t(count);
        }
        hash_.add(piece);
        bytes_ += piece.size();
    }

    // Whether these bytes are what has come from `from` on, as far as that goes.
    bool has(uint64_t from, std::string_view piece) const {
        std::vector<char> there(size_t(std::min<uint64_t>(piece.size(), bytes_ - from)));
        for (size_t done = 0; done < there.size();) {
            const ssize_t count =
                ::pread(out_.get(), there.data() + done, there.size() - done, off_t(from + done));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) out_.fail();
            done += size_t(count);
        }
        return piece.starts_with(std::string_view(there.data(), there.size()));
    }

    void start_over() {
        if (::ftruncate(out_.get(), 0) != 0) out_.fail();
        hash_ = Sha256();
        bytes_ = 0;
    }

    // Makes a blob of the whole file. Throws Error, and removes the file, if the hash is wrong.
    void finish(const fs::path& blob) {
        if (file_.is_sha256 && hash_.digest() != file_.blob) {
            fs::remove(path_);
            throw Error(file_.path +
                        ": what came has not the SHA-256 that the hub names; it was "
                        "deleted, please try again");
        }
        if (::fsync(out_.get()) != 0) out_.fail();
        fs::rename(path_, blob);
    }

  private:
    void read_what_is_there() {
        std::vector<char> piece(1 << 20);
        while (true) {
            const ssize_t count = ::pread(out_.get(), piece.data(), piece.size(), off_t(bytes_));
            if (count < 0) out_.fail();
            if (count == 0) return;
            if (uint64_t(count) > file_.size_bytes - bytes_) return start_over();
            hash_.add({piece.data(), size_t(count)});
            bytes_ += uint64_t(count);
        }
    }

    const fs::path path_;
    const RepositoryFile& file_;
    OpenFile out_;
    Sha256 hash_;
    uint64_t bytes_ = 0;
};

// The bytes of a path that have a meaning in an address, escaped.
std::string in_url(const std::string& path) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    std::string text;
    for (const unsigned char c : path) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || std::strchr("-_.~/", c);
        if (is_plain && c)
            text += char(c);
        else
            text += std::string("%") + kDigits[c / 16] + kDigits[c % 16];
    }
    return text;
}

class Puller {
  public:
    Puller(const RepositoryName& name, const PullOptions& options)
        : name_(name),
          options_(options),
          folder_(repository_in_cache(options.cache, name.org, name.name)),
          client_(options.token) {
        client_.on_silence = [this] {
            if (options_.on_note) options_.on_note("waiting for " + options_.endpoint + " ...");
        };
    }

    fs::path pull() {
        const Repository repository = ask();
        const ModelFilesChoice choice = choose_model(repository.files, name_);
        make_folder(folder_ / "blobs");
        for (const RepositoryFile& file : choice.files) all_bytes_ += file.size_bytes;
        check_room(choice.files);
        for (const RepositoryFile& file : choice.files) fetch(repository.commit, file);
        const fs::path snapshot = folder_ / "snapshots" / repository.commit;
        for (const RepositoryFile& file : choice.files) link(snapshot, file);
        // Last: whoever follows it finds whole files.
        make_folder(folder_ / "refs");
        ReplacedFile(folder_ / "refs" / "main").commit(repository.commit);
        return choice.is_gguf ? snapshot / choice.files.front().path : snapshot;
    }

  private:
    static void make_folder(const fs::path& folder) {
        std::error_code error;
        fs::create_directories(folder, error);
        if (error) throw Error(folder.string() + ": " + error.message());
    }

    Repository ask() {
        const std::string url =
            options_.endpoint + "/api/models/" + name_.id() + "/revision/main?blobs=true";
        const Reply reply = get(url, [&] { return client_.get(url); });
        has_begun_ = true;
        return parse_repository(Json::parse(reply.text, url), url);
    }

    // Repeats a request that fails for a reason that passes. Throws Error for a status that is no
    // success.
    Reply get(const std::string& url, const std::function<Reply()>& request) {
        int waited = 0;
        while (true) {
            const uint64_t before = done_bytes_;
            std::string reason;
            int wait_seconds = -1;
            try {
                Reply reply = request();
                const bool is_passing = reply.status == 429 || reply.status == 408 ||
                                        (reply.status >= 500 && reply.status != 501);
                if (!is_passing) return checked(std::move(reply), url);
                reason = url + ": HTTP " + std::to_string(reply.status);
                wait_seconds = seconds_to_wait(reply);
                if (reply.status == 429 && wait_seconds < 0)
                    throw Error(reason + ": too many requests; please try again later");
            } catch (const ConnectionLost& lost) {
                reason = lost.what();
            }
            if (done_bytes_ > before) failures_ = 0;
            if (++failures_ > (has_begun_ ? kMostFailures : kMostFirstFailures))
                throw Error(reason);
            if (wait_seconds < 0) {
                pause(kFirstPause * (1 << (failures_ - 1)), reason);
            } else {
                if ((waited += wait_seconds) > kMostWaitSeconds)
                    throw Error(reason + ": the server asks to wait " +
                                std::to_string(wait_seconds) + " s; please try again later");
                pause(std::chrono::seconds(wait_seconds), reason);
            }
        }
    }

    // -1: the reply does not say.
    static int seconds_to_wait(const Reply& reply) {
        const auto found = reply.headers.find("retry-after");
        if (found == reply.headers.end()) return -1;
        int seconds = 0;
        const std::string& text = found->second;
        const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
        return error == std::errc() && rest == text.data() + text.size() && seconds >= 0 ? seconds
                                                                                         : -1;
    }

    void pause(std::chrono::milliseconds time, const std::string& reason) {
        if (options_.on_note && has_begun_ && time >= std::chrono::seconds(1))
            options_.on_note(reason + "; next try in " +
                             std::to_string((time.count() + 999) / 1000) + " s");
        std::this_thread::sleep_for(time);
    }

    Reply checked(Reply reply, const std::string& url) const {
        if (reply.status == 200 || reply.status == 206) return reply;
        const auto code = reply.headers.find("x-error-code");
        const bool is_gated = code != reply.headers.end() && code->second == "GatedRepo";
        const std::string page = options_.endpoint + "/" + name_.id();
        if (is_gated || (reply.status == 403 && !options_.token.empty()))
            throw Error(name_.id() + " is gated: accept its terms at " + page +
                        (options_.token.empty() ? ", then set HF_TOKEN to a token of yours"
                                                : "; this token may not read it yet"));
        if (reply.status == 401 || reply.status == 403)
            throw Error(name_.id() + (options_.token.empty()
                                          ? ": there is no such repository, or it is private: then "
                                            "set HF_TOKEN to a token that may read it"
                                          : ": there is no such repository, or this HF_TOKEN may "
                                            "not read it"));
        if (reply.status == 404) throw Error(name_.id() + ": not found (" + url + ")");
        throw Error(url + ": HTTP " + std::to_string(reply.status));
    }

    void check_room(const std::vector<RepositoryFile>& files) const {
        uint64_t wanted = 0;
        for (const RepositoryFile& file : files) {
            std::error_code absent;
            if (fs::exists(folder_ / "blobs" / file.blob, absent)) continue;
            const uint64_t there = fs::file_size(incomplete(file), absent);
            wanted += file.size_bytes - (absent ? 0 : std::min(there, file.size_bytes));
        }
        std::error_code error;
        const fs::space_info room = fs::space(folder_, error);
        if (error || room.available >= wanted) return;
        throw Error(folder_.string() + ": " + std::to_string(wanted >> 20) +
                    " MiB are to come, and " + std::to_string(room.available >> 20) +
                    " MiB are free");
    }

    fs::path incomplete(const RepositoryFile& file) const {
        return folder_ / "blobs" / (file.blob + ".incomplete");
    }

    void show(const RepositoryFile& file) const {
        if (options_.on_progress) options_.on_progress({file.path, done_bytes_, all_bytes_});
    }

    void fetch(const std::string& commit, const RepositoryFile& file) {
        const fs::path blob = folder_ / "blobs" / file.blob;
        if (fs::exists(blob)) {
            done_bytes_ += file.size_bytes;
            return show(file);
        }
        Download download(incomplete(file), file);
        const uint64_t before = done_bytes_;
        done_bytes_ += download.bytes();
        show(file);
        const std::string url =
            options_.endpoint + "/" + name_.id() + "/resolve/" + commit + "/" + in_url(file.path);
        while (!download.is_whole()) {
            const uint64_t from = download.bytes();
            uint64_t received = 0, had = 0;  // in the newest reply, and before it
            const Reply reply = get(url, [&] {
                received = 0;
                had = download.bytes();
                return client_.get(
                    url, download.bytes(), [&](const Reply& begun, std::string_view piece) {
                        if (received == 0) check_begin(begun, download.bytes(), file, url);
                        // A server that cannot go on begins again: what is there stays.
                        const bool begins_again = begun.status == 200;
                        const uint64_t at = begins_again ? received : download.bytes();
                        received += piece.size();
                        if (at < download.bytes()) {
                            if (!download.has(at, piece)) refuse_other(begun, download, file, url);
                            piece.remove_prefix(
                                size_t(std::min<uint64_t>(piece.size(), download.bytes() - at)));
                        }
                        download.add(piece);
                        done_bytes_ = before + download.bytes();
                        show(file);
                    });
            });
            if (download.is_whole()) break;
            const bool begins_again = received > 0 && reply.status == 200;
            if (begins_again && had == 0) download.start_over();  // it is not known to be the file
            if (begins_again || download.bytes() == from)
                throw Error(url + ": the server sends " + std::to_string(received) + " of " +
                            std::to_string(file.size_bytes) + " bytes");
        }
        download.finish(blob);
    }

    // The reply does not begin as what is there. If it has the file's length, what is there is
    // wrong.
    [[noreturn]] static void refuse_other(const Reply& reply, Download& download,
                                          const RepositoryFile& file, const std::string& url) {
        const auto length = reply.headers.find("content-length");
        if (length == reply.headers.end() || length->second != std::to_string(file.size_bytes))
            throw Error(url + ": the server sends another file than before");
        download.start_over();
        throw Error(url + ": what had come was damaged; it was deleted, please try again");
    }

    // Throws Error, before anything is written, if the reply's headers show that its body is not
    // the rest of the file: a page that asks to log in, say.
    static void check_begin(const Reply& reply, uint64_t from, const RepositoryFile& file,
                            const std::string& url) {
        const auto header = [&](const char* name) {
            const auto found = reply.headers.find(name);
            return found == reply.headers.end() ? std::string() : found->second;
        };
        const std::string length = header("content-length"), range = header("content-range");
        if (lower_ascii(header("content-type")).starts_with("text/html"))
            throw Error(url + ": the server sends a page in place of the file");
        if (reply.status == 200 && !length.empty() && header("content-encoding").empty() &&
            length != std::to_string(file.size_bytes))
            throw Error(url + ": the server sends " + length + " of " +
                        std::to_string(file.size_bytes) + " bytes: it is another file");
        if (reply.status == 206 && !range.empty() &&
            !range.starts_with("bytes " + std::to_string(from) + "-"))
            throw Error(url + ": the server sends another part of the file (" + range + ")");
    }

    void link(const fs::path& snapshot, const RepositoryFile& file) const {
        const fs::path path = snapshot / file.path;
        make_folder(path.parent_path());
        fs::path target = fs::path("..") / ".." / "blobs" / file.blob;
        for (const char c : file.path)
            if (c == '/') target = fs::path("..") / target;
        std::error_code ignored;
        fs::remove(path, ignored);
        std::error_code error;
        fs::create_symlink(target, path, error);
        if (error) throw Error(path.string() + ": " + error.message());
    }

    const RepositoryName& name_;
    const PullOptions& options_;
    const fs::path folder_;
    HttpClient client_;
    uint64_t done_bytes_ = 0, all_bytes_ = 0;
    int failures_ = 0;
    bool has_begun_ = false;  // whether the server has answered
};

}  // namespace

fs::path pull(const RepositoryName& name, const PullOptions& options) {
    return Puller(name, options).pull();
}

}  // namespace aerie::hub
