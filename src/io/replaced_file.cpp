// Written beside its place and renamed: readers see the old text or the new one.
#include "io/replaced_file.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/error.h"

namespace aerie {

namespace fs = std::filesystem;

ReplacedFile::ReplacedFile(const fs::path& path) : path_(path), fresh_(path) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_directory(status)) fail(EISDIR);
    if (fs::is_symlink(fs::symlink_status(path, ignored)) && fs::exists(status))
        path_ = fresh_ = fs::canonical(path, ignored);  // the link stays one
    if (fs::exists(status) && !fs::is_regular_file(status)) return;
    fresh_ += "." + std::to_string(::getpid());
    if (std::ofstream stream(fresh_, std::ios::trunc); !stream) fail(errno);
}

ReplacedFile::~ReplacedFile() {
    std::error_code ignored;
    if (!fresh_.empty() && fresh_ != path_) fs::remove(fresh_, ignored);
}

void ReplacedFile::commit(const std::string& text) {
    {
        std::ofstream stream(fresh_, std::ios::binary | std::ios::trunc);
        stream << text;
        if (!stream.flush()) fail(errno);
    }
    if (fresh_ == path_) return;
    std::error_code error;
    fs::rename(fresh_, path_, error);
    if (error) fail(error.value());
    fresh_.clear();
}

void ReplacedFile::fail(int error) const {
    throw Error(path_.string() + ": cannot be written: " + std::generic_category().message(error));
}

}  // namespace aerie
