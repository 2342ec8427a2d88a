// Linux and similar systems.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "core/memory_limit.h"
#include "core/platform.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

namespace aerie::platform {

namespace fs = std::filesystem;

namespace {

int descriptor(const Handle& handle) {
    return int(handle.value());
}

// Returns 0, or why the bytes may not be on the disk. Some file systems do not support it and
// answer EINVAL.
int flush_descriptor(int file) {
    return ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
}

using OpenFolder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Returns the name of the next entry, or null: at the end with errno 0, else errno says why.
const char* next_name(DIR* folder) {
    errno = 0;
    const dirent* entry = ::readdir(folder);
    while (entry &&
           (entry->d_name == std::string_view(".") || entry->d_name == std::string_view("..")))
        entry = ::readdir(folder);
    return entry ? entry->d_name : nullptr;
}

// Must not allocate with operator new, which could throw.
void remove_entry(int folder, const char* name) noexcept {
    if (::unlinkat(folder, name, 0) == 0) return;
    const int inner = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) return;
    const OpenFolder open(::fdopendir(inner), ::closedir);
    if (!open) {
        ::close(inner);
        return;
    }
    while (const char* entry = next_name(open.get())) remove_entry(inner, entry);
    ::unlinkat(folder, name, AT_REMOVEDIR);
}

}  // namespace

void Handle::close() {
    if (value_ != kNone) ::close(int(value_));
    value_ = kNone;
}

int open_to_read(const fs::path& path, Handle& file, size_t& size_bytes) {
    // With O_NONBLOCK a FIFO is refused instead of waited for.
    file = Handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return errno;
    struct stat info = {};
    if (::fstat(descriptor(file), &info) != 0) return errno;
    if (S_ISDIR(info.st_mode)) return EISDIR;
    if (!S_ISREG(info.st_mode)) return EINVAL;
    size_bytes = size_t(info.st_size);
    return 0;
}

ptrdiff_t read_at(const Handle& file, size_t at, std::span<std::byte> out) {
    constexpr size_t kMaxAtOnce = size_t(1) << 30;  // Linux reads less than 2 GiB per call
    while (true) {
        const ssize_t got =
            ::pread(descriptor(file), out.data(), std::min(out.size(), kMaxAtOnce), off_t(at));
        if (got >= 0) return got;
        if (errno != EINTR) return -errno;
    }
}

int stamp(const Handle& file, FileStamp& stamp) {
    struct stat info = {};
    if (::fstat(descriptor(file), &info) != 0) return errno;
#ifdef __APPLE__
    const timespec modified = info.st_mtimespec;
#else
    const timespec modified = info.st_mtim;
#endif
    stamp = {uint64_t(info.st_size),
             int64_t(modified.tv_sec) * 1'000'000'000 + int64_t(modified.tv_nsec),
             uint64_t(info.st_dev), uint64_t(info.st_ino)};
    return 0;
}

int each_entry(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
    const OpenFolder open(::opendir(folder.c_str()), ::closedir);
    if (!open) return errno;
    while (const char* name = next_name(open.get())) visit(name);
    return errno;
}

void remove_tree(const fs::path& path) noexcept {
    remove_entry(AT_FDCWD, path.c_str());
}

// The file is locked while its maker lives; the system releases the lock of a killed program.
int make_claimed(const fs::path& path, bool is_folder, bool is_private, Handle& made) {
    if (is_folder) {
        if (::mkdir(path.c_str(), is_private ? 0700 : 0777) != 0) return errno;
        made = Handle(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    } else {
        made = Handle(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             is_private ? 0600 : 0666));
    }
    if (!made) return errno;
    if (::flock(descriptor(made), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EAGAIN;
    struct stat info = {};
    return ::fstat(descriptor(made), &info) == 0 && info.st_nlink > 0 ? 0 : EAGAIN;
}

void remove_abandoned(const fs::path& path) {
    const Handle handle(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!handle) return;
    struct stat info = {};
    if (::fstat(descriptor(handle), &info) == 0 && info.st_uid == ::geteuid() &&
        (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
        ::flock(descriptor(handle), LOCK_EX | LOCK_NB) == 0)
        remove_tree(path);
}

int take_access(const Handle& made, const fs::path& replaced, bool only_own) {
    constexpr mode_t kMode = 0777, kGroup = 0070;
    struct stat old = {}, own = {};
    if (::lstat(replaced.c_str(), &old) != 0 || !S_ISREG(old.st_mode)) return 0;
    if (only_own && old.st_uid != ::geteuid()) return 0;
    if (::fstat(descriptor(made), &own) != 0) return errno;
    mode_t mode = old.st_mode & kMode;
    const bool has_group =
        old.st_gid == own.st_gid || ::fchown(descriptor(made), uid_t(-1), old.st_gid) == 0;
    if (!has_group) mode &= ~kGroup;
    return ::fchmod(descriptor(made), mode) == 0 ? 0 : errno;
}

int write_all(const Handle& file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor(file), bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) return errno;
        if (written > 0) bytes = bytes.subspan(size_t(written));
    }
    return 0;
}

int flush(const Handle& file) {
    return flush_descriptor(descriptor(file));
}

int flush(const fs::path& path) {
    const Handle handle(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    return handle ? flush(handle) : errno;
}

int rename_claimed(Handle&, const fs::path& from, const fs::path& to) {
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

Pages map_pages(size_t bytes) {
    constexpr size_t kHugePage = size_t(2) << 20;
    Pages pages;
    pages.mapped_bytes = bytes + kHugePage;
    pages.base = ::mmap(nullptr, pages.mapped_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages.base == MAP_FAILED) return {};
    const size_t past = reinterpret_cast<uintptr_t>(pages.base) % kHugePage;
    pages.data = static_cast<std::byte*>(pages.base) + (kHugePage - past) % kHugePage;
#ifdef MADV_HUGEPAGE
    ::madvise(pages.data, bytes, MADV_HUGEPAGE);
#endif
    return pages;
}

void unmap_pages(const Pages& pages) {
    ::munmap(pages.base, pages.mapped_bytes);
}

int processors() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
    return std::max(1, int(std::thread::hardware_concurrency()));
}

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "CPU";
}

size_t memory_bytes() {
    const size_t all = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    const size_t most = std::min(all, memory_limit());
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
    return std::min(most, size_t(limit.rlim_cur));
}

size_t peak_memory_bytes() {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    return size_t(usage.ru_maxrss) * 1024;
}

// Without this, glibc raises the size below which it keeps freed blocks up to 32 MiB.
void return_freed_memory() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

void trim_freed_memory() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

void sleep_while(const std::atomic<uint32_t>& value, uint32_t old) {
    value.wait(old, std::memory_order_acquire);
}

void wake_one(std::atomic<uint32_t>& value) {
    value.notify_one();
}

void wake_all(std::atomic<uint32_t>& value) {
    value.notify_all();
}

std::tm local_time() {
    const std::time_t now = std::time(nullptr);
    std::tm shown = {};
    ::localtime_r(&now, &shown);
    return shown;
}

fs::path path_of(std::string_view utf8) {
    return fs::path(utf8);
}

fs::path program() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored);
}

fs::path library() {
    Dl_info info = {};
    if (::dladdr(reinterpret_cast<const void*>(&library), &info) == 0 || !info.dli_fname) return {};
    std::error_code ignored;
    return fs::canonical(info.dli_fname, ignored);
}

// $XDG_CACHE_HOME or ~/.cache.
fs::path cache_folder() {
    const fs::path cache = path_variable("XDG_CACHE_HOME");
    if (cache.is_absolute()) return cache;  // the specification calls relative paths invalid
    const fs::path home = home_folder();
    return home.is_absolute() ? home / ".cache" : fs::path();
}

fs::path home_folder() {
    if (fs::path home = path_variable("HOME"); home.is_absolute()) return home;
    std::vector<char> buffer(4096);
    passwd entry = {}, *found = nullptr;
    while (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == ERANGE)
        buffer.resize(2 * buffer.size());
    if (!found || !found->pw_dir) return {};
    const fs::path home = entry.pw_dir;
    return home.is_absolute() ? home : fs::path();
}

fs::path path_variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value ? value : "";
}

}  // namespace aerie::platform
