// The differences between operating systems. Each system has a file: platform_posix.cpp,
// platform_windows.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace aerie::platform {

// An open file or folder, closed by the destructor.
class Handle {
  public:
    Handle() = default;
    explicit Handle(intptr_t value) : value_(value) {}
    Handle(Handle&& other) noexcept { *this = std::move(other); }
    Handle& operator=(Handle&& other) noexcept {
        close();
        value_ = std::exchange(other.value_, kNone);
        return *this;
    }
    ~Handle() { close(); }

    explicit operator bool() const { return value_ != kNone; }
    intptr_t value() const { return value_; }
    void close();

  private:
    static constexpr intptr_t kNone = -1;
    intptr_t value_ = kNone;
};

// Functions that return int return 0, or an error number of <cerrno>.

// Opens a regular file to read it. Gives EISDIR for a folder and EINVAL for anything else that is
// not a file. Never blocks.
int open_to_read(const std::filesystem::path& path, Handle& file, size_t& size_bytes);
// Returns the bytes read into `out`, at most 1 GiB at once; 0 at the end of the file; the negated
// error number if it fails.
ptrdiff_t read_at(const Handle& file, size_t at, std::span<std::byte> out);

// Identifies a version of a file: if two stamps differ, it is another file or it was written to.
struct FileStamp {
    uint64_t size_bytes = 0;
    int64_t modified = 0;  // in nanoseconds since 1970, as the file system counts
    uint64_t device = 0, number = 0;

    bool operator==(const FileStamp&) const = default;
};
int stamp(const Handle& file, FileStamp& stamp);  // follows the open file, even if it was renamed

// Calls `visit` with the name of each entry of a folder except "." and "..". Exceptions from
// `visit`, and std::bad_alloc, are passed on. The iterators of std::filesystem would end the
// program if memory runs out (libstdc++ 12).
int each_entry(const std::filesystem::path& folder,
               const std::function<void(const std::filesystem::path& name)>& visit);
// Removes a file, or a folder with everything in it. Follows no links; skips what cannot be
// removed.
void remove_tree(const std::filesystem::path& path) noexcept;

// Makes a new file or folder that is claimed while the handle lives, or until its maker is killed.
// EEXIST if it exists; EAGAIN if another program took it for abandoned in that moment.
// `is_private`: only its owner may read and write it.
int make_claimed(const std::filesystem::path& path, bool is_folder, bool is_private, Handle& made);
// Gives a claimed private file the mode and group of the file that it will replace. If the group
// cannot be kept, its rights are dropped. Nothing changes if no regular file is there, or if
// `only_own` is set and the file belongs to another user.
int take_access(const Handle& made, const std::filesystem::path& replaced, bool only_own);
// Removes the result of make_claimed if it belongs to the user and is no longer claimed.
void remove_abandoned(const std::filesystem::path& path);
int write_all(const Handle& file, std::span<const std::byte> bytes);
// Flush to the disk, as far as the file system supports it.
int flush(const Handle& file);
int flush(const std::filesystem::path& path);
// Renames the claimed file or folder `from` to `to`; an existing file is replaced.
int rename_claimed(Handle& made, const std::filesystem::path& from,
                   const std::filesystem::path& to);

// Zeroed memory in the largest pages of the system, aligned to their size; null if there is not
// enough.
struct Pages {
    std::byte* data = nullptr;
    void* base = nullptr;  // start of the whole mapping
    size_t mapped_bytes = 0;
};
Pages map_pages(size_t bytes);
void unmap_pages(const Pages& pages);

int processors();  // processors that this process may use, at least 1
std::string processor_name();
size_t memory_bytes();       // memory of the machine, or this process's limit
size_t peak_memory_bytes();  // most memory that this process has used
// From now on the system gets large blocks back as soon as they are freed. Otherwise buffers from
// reading files would stay beside the weights made of them.
void return_freed_memory();
// Returns the freed memory of all threads to the system now, as far as whole pages are empty.
void trim_freed_memory();

// Sleeps while the value equals `old`; may wake up spuriously. After a change of the value,
// wake_one or wake_all must be called.
void sleep_while(const std::atomic<uint32_t>& value, uint32_t old);
void wake_one(std::atomic<uint32_t>& value);
void wake_all(std::atomic<uint32_t>& value);

std::filesystem::path path_of(std::string_view utf8);

std::tm local_time();  // current time in the local time zone

std::filesystem::path program();       // path of this program; empty: not known
std::filesystem::path library();       // path of the library or program that contains this code
std::filesystem::path cache_folder();  // the user's, shared by all programs; empty: not known
std::filesystem::path home_folder();   // the user's; empty: not known
// The path in an environment variable; empty if it is not set.
std::filesystem::path path_variable(const std::string& name);

}  // namespace aerie::platform
