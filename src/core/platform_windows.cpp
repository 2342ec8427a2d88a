// Windows 8 and later. CI runs it under Wine.
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#define PSAPI_VERSION 2
#include <windows.h>
// This header needs windows.h before it.
#include <psapi.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/platform.h"

namespace aerie::platform {

namespace fs = std::filesystem;

namespace {

HANDLE handle_of(const Handle& handle) {
    return reinterpret_cast<HANDLE>(handle.value());
}

int last_error() {
    switch (::GetLastError()) {
        case ERROR_SUCCESS:
            return 0;
        case ERROR_FILE_NOT_FOUND:
        case ERROR_PATH_NOT_FOUND:
            return ENOENT;
        case ERROR_ACCESS_DENIED:
            return EACCES;
        case ERROR_FILE_EXISTS:
        case ERROR_ALREADY_EXISTS:
            return EEXIST;
        case ERROR_SHARING_VIOLATION:
        case ERROR_LOCK_VIOLATION:
            return EAGAIN;
        case ERROR_DISK_FULL:
        case ERROR_HANDLE_DISK_FULL:
            return ENOSPC;
        case ERROR_NOT_ENOUGH_MEMORY:
        case ERROR_OUTOFMEMORY:
            return ENOMEM;
        default:
            return EIO;
    }
}

constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

Handle open(const fs::path& path, DWORD access, DWORD share, DWORD disposition, DWORD flags) {
    return Handle(reinterpret_cast<intptr_t>(
        ::CreateFileW(path.c_str(), access, share, nullptr, disposition, flags, nullptr)));
}

}  // namespace

void Handle::close() {
    if (value_ != kNone) ::CloseHandle(handle_of(*this));
    value_ = kNone;
}

int open_to_read(const fs::path& path, Handle& file, size_t& size_bytes) {
    const DWORD attributes = ::GetFileAttributesW(path.c_str());
    if (attributes == INVALID_FILE_ATTRIBUTES) return last_error();
    if (attributes & FILE_ATTRIBUTE_DIRECTORY) return EISDIR;
    file = open(path, GENERIC_READ, kShareAll, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL);
    if (!file) return last_error();
    if (::GetFileType(handle_of(file)) != FILE_TYPE_DISK) return EINVAL;
    LARGE_INTEGER size = {};
    if (!::GetFileSizeEx(handle_of(file), &size)) return last_error();
    size_bytes = size_t(size.QuadPart);
    return 0;
}

ptrdiff_t read_at(const Handle& file, size_t at, std::span<std::byte> out) {
    constexpr size_t kMaxAtOnce = size_t(1) << 30;
    OVERLAPPED place = {};
    place.Offset = DWORD(at);
    place.OffsetHigh = DWORD(uint64_t(at) >> 32);
    DWORD got = 0;
    const DWORD wanted = DWORD(std::min(out.size(), kMaxAtOnce));
    if (::ReadFile(handle_of(file), out.data(), wanted, &got, &place)) return ptrdiff_t(got);
    return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : -last_error();
}

int stamp(const Handle& file, FileStamp& stamp) {
    constexpr int64_t kTicksTo1970 = 116'444'736'000'000'000;  // ticks of 100 ns since 1601
    BY_HANDLE_FILE_INFORMATION info = {};
    if (!::GetFileInformationByHandle(handle_of(file), &info)) return last_error();
    const auto number = [](DWORD high, DWORD low) { return uint64_t(high) << 32 | low; };
    const uint64_t ticks =
        number(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime);
    stamp = {number(info.nFileSizeHigh, info.nFileSizeLow), (int64_t(ticks) - kTicksTo1970) * 100,
             info.dwVolumeSerialNumber, number(info.nFileIndexHigh, info.nFileIndexLow)};
    return 0;
}

int each_entry(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
    WIN32_FIND_DATAW entry = {};
    const HANDLE found = ::FindFirstFileW((folder / L"*").c_str(), &entry);
    if (found == INVALID_HANDLE_VALUE) return last_error();
    const std::unique_ptr<void, decltype(&::FindClose)> closed(found, &::FindClose);
    do {
        const std::wstring_view name = entry.cFileName;
        if (name != L"." && name != L"..") visit(name);
    } while (::FindNextFileW(found, &entry));
    return ::GetLastError() == ERROR_NO_MORE_FILES ? 0 : last_error();
}

namespace {

void remove_entry(const fs::path& path) {
    const DWORD attributes = ::GetFileAttributesW(path.c_str());
    if (attributes == INVALID_FILE_ATTRIBUTES) return;
    if (!(attributes & FILE_ATTRIBUTE_DIRECTORY)) {
        ::DeleteFileW(path.c_str());
        return;
    }
    if (!(attributes & FILE_ATTRIBUTE_REPARSE_POINT))
        each_entry(path, [&](const fs::path& name) { remove_entry(path / name); });
    ::RemoveDirectoryW(path.c_str());
}

}  // namespace

void remove_tree(const fs::path& path) noexcept {
    try {
        remove_entry(path);
    } catch (const std::bad_alloc&) {  // the rest stays
    }
}

// Files inherit the access list of their folder.
int take_access(const Handle&, const fs::path&, bool) {
    return 0;
}

// While the maker has the file open, nobody can open it without sharing.
int make_claimed(const fs::path& path, bool is_folder, bool, Handle& made) {
    if (is_folder) {
        if (!::CreateDirectoryW(path.c_str(), nullptr)) return last_error();
        made = open(path, GENERIC_READ, kShareAll, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    } else {
        made = open(path, GENERIC_WRITE, kShareAll, CREATE_NEW, FILE_ATTRIBUTE_NORMAL);
    }
    return made ? 0 : last_error();
}

void remove_abandoned(const fs::path& path) {
    Handle alone = open(path, GENERIC_READ, 0, OPEN_EXISTING,
                        FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT);
    if (!alone) return;
    alone.close();
    remove_tree(path);
}

int write_all(const Handle& file, std::span<const std::byte> bytes) {
    constexpr size_t kMaxAtOnce = size_t(1) << 30;
    while (!bytes.empty()) {
        DWORD written = 0;
        if (!::WriteFile(handle_of(file), bytes.data(), DWORD(std::min(bytes.size(), kMaxAtOnce)),
                         &written, nullptr))
            return last_error();
        bytes = bytes.subspan(written);
    }
    return 0;
}

// Windows cannot flush folders.
int flush(const Handle& file) {
    if (::FlushFileBuffers(handle_of(file))) return 0;
    const DWORD error = ::GetLastError();
    return error == ERROR_ACCESS_DENIED || error == ERROR_INVALID_FUNCTION ? 0 : last_error();
}

int flush(const fs::path& path) {
    const Handle handle = open(path, GENERIC_READ | GENERIC_WRITE, kShareAll, OPEN_EXISTING,
                               FILE_FLAG_BACKUP_SEMANTICS);
    return handle ? flush(handle) : 0;
}

// An open file cannot be renamed.
int rename_claimed(Handle& made, const fs::path& from, const fs::path& to) {
    made.close();
    return ::MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING) ? 0 : last_error();
}

// Large pages need a privilege that users do not have.
Pages map_pages(size_t bytes) {
    Pages pages;
    pages.base = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    pages.data = static_cast<std::byte*>(pages.base);
    pages.mapped_bytes = bytes;
    return pages;
}

void unmap_pages(const Pages& pages) {
    ::VirtualFree(pages.base, 0, MEM_RELEASE);
}

int processors() {
    return std::max(1, int(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)));
}

std::string processor_name() {
    char name[128] = {};
    DWORD bytes = sizeof(name) - 1;
    const LSTATUS status =
        ::RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                       "ProcessorNameString", RRF_RT_REG_SZ, nullptr, name, &bytes);
    return status == ERROR_SUCCESS ? name : "CPU";
}

size_t memory_bytes() {
    MEMORYSTATUSEX status = {};
    status.dwLength = sizeof(status);
    return ::GlobalMemoryStatusEx(&status) ? size_t(status.ullTotalPhys) : 0;
}

size_t peak_memory_bytes() {
    PROCESS_MEMORY_COUNTERS counters = {};
    return ::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof(counters))
               ? counters.PeakWorkingSetSize
               : 0;
}

void return_freed_memory() {}  // freed memory goes back to the system anyway
void trim_freed_memory() {}

// std::atomic's wait is not used: without a futex, g++ 12's version may miss a wake-up between its
// check of the value and its sleep (GCC PR 104928).
void sleep_while(const std::atomic<uint32_t>& value, uint32_t old) {
    static_assert(sizeof(value) == sizeof(old));
    ::WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&value), &old, sizeof(old), INFINITE);
}

void wake_one(std::atomic<uint32_t>& value) {
    ::WakeByAddressSingle(&value);
}

void wake_all(std::atomic<uint32_t>& value) {
    ::WakeByAddressAll(&value);
}

std::tm local_time() {
    const std::time_t now = std::time(nullptr);
    std::tm shown = {};
    ::localtime_s(&shown, &now);
    return shown;
}

fs::path path_of(std::string_view utf8) {
    return fs::path(std::u8string(utf8.begin(), utf8.end()));
}

namespace {

// Path of a module's file; null means the program.
fs::path file_of(HMODULE module) {
    wchar_t path[32768];
    const DWORD length = ::GetModuleFileNameW(module, path, DWORD(std::size(path)));
    return fs::path(path, path + length);
}

}  // namespace

fs::path program() {
    return file_of(nullptr);
}

fs::path library() {
    HMODULE module = nullptr;
    const DWORD how =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (!::GetModuleHandleExW(how, reinterpret_cast<const wchar_t*>(&library), &module)) return {};
    return file_of(module);
}

fs::path cache_folder() {
    return path_variable("LOCALAPPDATA");
}

fs::path home_folder() {
    return path_variable("USERPROFILE");
}

fs::path path_variable(const std::string& name) {
    const wchar_t* value = ::_wgetenv(path_of(name).c_str());
    return value ? value : L"";
}

}  // namespace aerie::platform
