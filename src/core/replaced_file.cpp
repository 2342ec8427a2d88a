// Written beside its place and renamed, so readers see the old bytes or the new ones.
#include "core/replaced_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/error.h"

namespace aerie {

namespace fs = std::filesystem;

ReplacedFile::ReplacedFile(const fs::path& path, FileAccess access) : path_(path), access_(access) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_directory(status)) fail(EISDIR);
    if (fs::is_symlink(fs::symlink_status(path, ignored)) && fs::exists(status))
        path_ = fs::canonical(path, ignored);  // the link itself stays
    is_regular_ = !fs::exists(status) || fs::is_regular_file(status);
    if (is_regular_)
        PendingFile(path_, PendingFile::Kind::file, access_);  // tests that a file can be made
}

void ReplacedFile::commit(std::string_view bytes) const {
    commit([&](const Write& write) { write(bytes); });
}

void ReplacedFile::commit(const std::function<void(const Write&)>& produce) const {
    if (!is_regular_) return write_directly(produce);
    PendingFile pending(path_, PendingFile::Kind::file, access_);
    produce([&](std::string_view bytes) { pending.write(bytes); });
    pending.finish();
}

void ReplacedFile::write_directly(const std::function<void(const Write&)>& produce) const {
    std::ofstream stream(path_, std::ios::binary | std::ios::trunc);
    produce([&](std::string_view bytes) { stream << bytes; });
    if (!stream.flush()) fail(errno);
}

void ReplacedFile::fail(int error) const {
    throw Error(path_.string() + ": cannot be written: " + std::generic_category().message(error),
                Cause::inaccessible);
}

}  // namespace aerie
