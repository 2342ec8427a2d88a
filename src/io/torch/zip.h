// The directory of a zip file with uncompressed entries: their names and where their bytes lie.
#pragma once

#include <string>
#include <vector>

#include "io/tensor_file.h"

namespace aerie {

struct ZipEntry {
    std::string name;
    CheckedRange data;  // reading compares the CRC; 0: torch wrote none
};

// `file` names the source in errors. Zip64 is read. Refuses compressed or encrypted entries,
// entries that overlap, leave the file or share a name, more than 65,600 of them, and zips with
// anything in front of or behind them. No data is read. Throws Error.
std::vector<ZipEntry> read_zip(const ByteSource& source, const std::string& file);

}  // namespace aerie
