// Read-only mappings with mmap, and small text files.
#include "io/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "core/error.h"

namespace aerie {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
    throw Error(path.string() + ": " + std::generic_category().message(error));
}

class Descriptor {
  public:
    // O_NONBLOCK: a FIFO must be refused, not waited for.
    explicit Descriptor(const std::filesystem::path& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (fd_ < 0) fail(path, errno);
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
    struct stat info = {};
    if (::fstat(file.get(), &info) != 0) fail(path, errno);
    if (!S_ISREG(info.st_mode)) throw Error(path.string() + ": not a regular file");
    return size_t(info.st_size);
}

}  // namespace

std::shared_ptr<const FileMap> FileMap::open(const std::filesystem::path& path) {
    const Descriptor file(path);
    std::shared_ptr<FileMap> map(new FileMap);
    map->path_ = path;
    const size_t size_bytes = regular_file_size(file, path);
    if (size_bytes == 0) return map;
    void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) fail(path, errno);
    map->data_ = static_cast<const std::byte*>(data);
    map->size_bytes_ = size_bytes;
    return map;
}

FileMap::~FileMap() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

void release_pages(std::span<const std::byte> bytes) {
    const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data());
    // Whole pages only: the others belong to neighbours too.
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t last = (begin + bytes.size()) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string read_text(const std::filesystem::path& path, size_t max_bytes) {
    const Descriptor file(path);
    const size_t size_bytes = regular_file_size(file, path);
    if (size_bytes > max_bytes) {
        throw Error(path.string() + ": " + std::to_string(size_bytes) +
                    " bytes, expected at most " + std::to_string(max_bytes));
    }
    std::string text(size_bytes, '\0');
    size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path, errno);
        if (got == 0) break;  // truncated meanwhile: what is there will be judged by the parser
        filled += size_t(got);
    }
    text.resize(filled);
    return text;
}

}  // namespace aerie
