// The directory of a zip file whose entries are stored as they are: names and where their bytes
// lie.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace aerie {

struct ZipEntry {
    std::string name;
    std::span<const std::byte> data;
};

// `file` names the source in errors. Zip64 is read. Refuses compressed or encrypted entries,
// entries that overlap, leave the file or share a name, and more than 65,600 of them. Checksums are
// not compared. Throws Error.
std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& file);

}  // namespace aerie
