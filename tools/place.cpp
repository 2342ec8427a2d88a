// The check runs before anything is written.
#include "place.h"

#include <string>
#include <system_error>

#include "core/error.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

// The existing folder that `path` will lie in.
fs::path parent_folder(const fs::path& path) {
    std::error_code ignored;
    fs::path parent = fs::absolute(path).lexically_normal().parent_path();
    while (!fs::is_directory(parent, ignored) && parent.has_relative_path())
        parent = parent.parent_path();
    return parent;
}

}  // namespace

void check_place(std::initializer_list<fs::path> made, size_t bytes) {
    constexpr size_t kSmallFiles = 8 << 20;
    std::error_code ignored, error;
    for (const fs::path& path : made)
        if (fs::exists(fs::symlink_status(path, ignored)))
            throw Error(path.string() +
                        ": exists already, and nothing is overwritten: name another place");
    const fs::space_info space = fs::space(parent_folder(*made.begin()), error);
    if (!error && space.available < bytes + kSmallFiles)
        throw Error(made.begin()->string() + ": " + std::to_string((bytes + kSmallFiles) >> 20) +
                    " MiB needed, " + std::to_string(space.available >> 20) + " MiB free");
}

}  // namespace aerie
