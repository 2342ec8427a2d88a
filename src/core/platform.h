// What differs between operating systems. Each has a file of its own: platform_posix.cpp,
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

// An open file or folder, closed at the end.
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

// Functions that return an int return 0, or what went wrong as a number of <cerrno>.

// A regular file to be read; EISDIR for a folder, EINVAL for anything else that is no file. Waits
// for nobody.
int open_to_read(const std::filesystem::path& path, Handle& file, size_t& size_bytes);
// Bytes read into `out`, at most 1 GiB at once; 0: the file has ended; negative: minus the error.
ptrdiff_t read_at(const Handle& file, size_t at, std::span<std::byte> out);

// By which a file is known again: it is another one, or was written to, where these differ.
struct FileStamp {
    uint64_t size_bytes = 0;
    int64_t modified = 0;  // in nanoseconds since 1970, as the file system counts
    uint64_t device = 0, number = 0;

    bool operator==(const FileStamp&) const = default;
};
int stamp(const Handle& file, FileStamp& stamp);  // of the open file, whatever its name is now

// Calls `visit` with the name of each entry of a folder but "." and "..". What `visit` throws, and
// std::bad_alloc, are thrown; the iterators of std::filesystem end the program instead where an
// entry finds no memory (libstdc++ 12).
int each_entry(const std::filesystem::path& folder,
               const std::function<void(const std::filesystem::path& name)>& visit);
// Removes a file, or a folder with all that is in it; no link is followed. What cannot be removed
// stays.
void remove_tree(const std::filesystem::path& path) noexcept;

// A new file or folder, claimed as long as the handle lives, or until its maker is killed. EEXIST
// if there is one; EAGAIN if another program took it for abandoned at once. `is_private`: only its
// owner may read and write it.
int make_claimed(const std::filesystem::path& path, bool is_folder, bool is_private, Handle& made);
// Gives a claimed private file the mode and the group of the file that it will replace. The rights
// of a group that cannot be kept are dropped. Nothing changes where no regular file is there, or
// where `only_own` asks for a file of this user and it is another user's.
int take_access(const Handle& made, const std::filesystem::path& replaced, bool only_own);
// Removes what make_claimed made, if it is the user's and nobody claims it any more.
void remove_abandoned(const std::filesystem::path& path);
int write_all(const Handle& file, std::span<const std::byte> bytes);
// Onto the disk, as far as the file system can say.
int flush(const Handle& file);
int flush(const std::filesystem::path& path);
// What was made (and is claimed by `made`) gets its place; a file that is there is replaced.
int rename_claimed(Handle& made, const std::filesystem::path& from,
                   const std::filesystem::path& to);

// Zeroed memory in the system's largest pages, from a multiple of their size; null: there is not
// so much.
struct Pages {
    std::byte* data = nullptr;
    void* base = nullptr;  // of the whole mapping
    size_t mapped_bytes = 0;
};
Pages map_pages(size_t bytes);
void unmap_pages(const Pages& pages);

int processors();  // that this process may use, at least 1
std::string processor_name();
size_t memory_bytes();       // of the machine, or what this process may have of it
size_t peak_memory_bytes();  // that this process has had
// From now on the system gets large blocks back as soon as they are freed; what was read from files
// would else stay beside the weights made of it.
void return_freed_memory();
// Freed memory of all threads goes back to the system now, as far as its pages are empty.
void trim_freed_memory();

// Sleeps while the value is `old`; may wake for nothing. Who changes the value wakes those that
// sleep.
void sleep_while(const std::atomic<uint32_t>& value, uint32_t old);
void wake_one(std::atomic<uint32_t>& value);
void wake_all(std::atomic<uint32_t>& value);

std::filesystem::path path_of(std::string_view utf8);

std::tm local_time();  // now, by the clock of this place

std::filesystem::path program();  // this program's file; empty: not known
std::filesystem::path library();  // the file that this code lies in: a library's, or the program's
std::filesystem::path cache_folder();  // of the user, for all programs; empty: not known
std::filesystem::path home_folder();   // of the user; empty: not known
// The path that an environment variable holds; empty: there is none.
std::filesystem::path path_variable(const std::string& name);

}  // namespace aerie::platform
