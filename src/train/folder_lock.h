// Keeps two programs from training into the same folder.
#pragma once

#include <filesystem>

namespace aerie::train {

class FolderLock {
  public:
    // Makes the folder if there is none. Throws Error if that fails, UsageError if another program
    // holds it.
    explicit FolderLock(const std::filesystem::path& folder);
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int file_ = -1;
};

}  // namespace aerie::train
