#include "train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace aerie::train {

FolderLock::FolderLock(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(folder.string() + ": " + error.message());
    file_ = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ < 0) throw Error(folder.string() + ": " + std::strerror(errno));
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    const int reason = errno;
    ::close(file_);
    if (reason == EWOULDBLOCK) throw UsageError("another program trains into " + folder.string());
    throw Error(folder.string() + ": it cannot be locked: " + std::strerror(reason));
}

FolderLock::~FolderLock() {
    ::close(file_);
}

}  // namespace aerie::train
