// The zip around a torch checkpoint may have plain entries only, each where the directory says.
#include "io/torch/torch_bin.h"

#include "io/crc32.h"
#include "io/damage.h"
#include "io/memory_source.h"
#include "io/write_files.h"

namespace aerie {
namespace {

using test::bytes_of;
using test::error_of;
using test::TorchTensor;
using test::ZipFile;
using test::ZipWriter;

const std::vector<TorchTensor> kTensors = {
    {.name = "fc.weight", .shape = {2, 2}, .data = "0123456789abcdef"},
    {.name = "fc.bias",
     .storage_class = "HalfStorage",
     .element_bytes = 2,
     .shape = {2},
     .data = "wxyz"}};

std::vector<NamedTensor> read(const std::string& file) {
    return read_torch_bin(test::MemorySource(file), "m.bin");
}
std::string problem(const std::string& file) {
    return error_of([&] { read(file); });
}
std::string problem_with(const ZipFile& entry) {
    return problem(test::torch_file(test::torch_pickle(kTensors), kTensors, {entry}));
}

void expect_tensors(const std::string& file) {
    const auto tensors = read(file);
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors[0].name, "fc.weight");
    EXPECT_EQ(tensors[0].shape_text(), "[2, 2]");
    EXPECT_EQ(test::data_of(file, tensors[1]), "wxyz");
}

TEST(TorchBin, ReadsStoredEntries) {
    expect_tensors(test::torch_file(kTensors));
}

TEST(TorchBin, ReadsZip64) {
    ZipWriter zip;
    zip.add({.name = "m/data.pkl", .data = test::torch_pickle(kTensors), .zip64 = true});
    zip.add({.name = "m/data/0", .data = kTensors[0].data, .zip64 = true});
    zip.add({.name = "m/data/1", .data = kTensors[1].data, .zip64 = true});
    expect_tensors(zip.file());
    expect_tensors(zip.file(true));
}

TEST(TorchBin, RefusesLegacyFormatsInOneLine) {
    const std::string legacy("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
    for (const std::string& file :
         {legacy, std::string("fc.weight\0\0\0\0", 13), std::string("PK")}) {
        EXPECT_EQ(problem(file),
                  "m.bin: not a zip file (torch formats older than 1.6 are not read)");
    }
}

TEST(TorchBin, RefusesCompressedAndEncryptedEntries) {
    EXPECT_EQ(problem_with({.name = "model/x", .data = "abc", .method = 8}),
              "m.bin: zip entry 'model/x' is compressed or encrypted, expected a plain one");
    EXPECT_EQ(problem_with({.name = "model/x", .data = "abc", .flags = 1}),
              "m.bin: zip entry 'model/x' is compressed or encrypted, expected a plain one");
}

TEST(TorchBin, RefusesEntriesThatOverlapOrLeaveTheFile) {
    for (const bool zip64 : {false, true}) {
        for (const uint64_t size : {uint64_t(1) << 20, uint64_t(0xFFFFFFF0), ~uint64_t(0)}) {
            EXPECT_NE(problem_with(
                          {.name = "model/x", .data = "abc", .zip64 = zip64, .claimed_size = size}),
                      "");
        }
        for (const uint64_t place : {uint64_t(1) << 20, ~uint64_t(0) - 40}) {
            EXPECT_NE(
                problem_with(
                    {.name = "model/x", .data = "abc", .zip64 = zip64, .claimed_place = place}),
                "");
        }
    }
    // An entry inside another one's data.
    const ZipFile inner{.name = "inner", .data = "abc"};
    const ZipFile outer{.name = "outer", .data = ZipWriter().add(inner).file()};
    constexpr uint64_t kLocalHeaderBytes = 30;
    ZipFile again = inner;
    again.claimed_place = kLocalHeaderBytes + outer.name.size();
    EXPECT_EQ(problem(ZipWriter().add(outer).add(again).file()),
              "m.bin: zip entries 'outer' and 'inner' overlap");
    EXPECT_EQ(problem_with({.name = "model/x", .data = "abc", .claimed_place = 0}),
              "m.bin: zip entry 'model/x' is not where the directory says");
}

// Other readers trust the local header.
TEST(TorchBin, RefusesLocalHeadersThatSaySomethingElse) {
    const auto patched = [](size_t at, uint64_t value, size_t bytes) {
        return ZipFile{.name = "model/x",
                       .data = "abc",
                       .checksum = true,
                       .local = ZipFile::Patch{at, test::little_endian(value, bytes)}};
    };
    constexpr size_t kFlags = 6, kMethod = 8, kTime = 10, kCrc = 14, kStored = 18, kPlain = 22;
    EXPECT_EQ(problem_with(patched(kTime, 0x12345678, 4)), "") << "a time is nobody's business";
    const std::string other =
        "m.bin: zip entry 'model/x' is another one by its own header than by the directory: "
        "expected the same flags, method, sizes and checksum";
    for (const uint64_t flags : {1, 8, 0x800})
        EXPECT_EQ(problem_with(patched(kFlags, flags, 2)), other);
    EXPECT_EQ(problem_with(patched(kMethod, 8, 2)), other);
    for (const size_t field : {kCrc, kStored, kPlain})
        for (const uint64_t value : {uint64_t(0), uint64_t(2), uint64_t(0xFFFFFFFE)})
            EXPECT_EQ(problem_with(patched(field, value, 4)), other) << field << " " << value;
    // A saturated size without a zip64 field, and with a field that differs.
    EXPECT_EQ(problem_with(patched(kPlain, 0xFFFFFFFF, 4)), other);
    for (const size_t at : {size_t(30 + 7 + 4), size_t(30 + 7 + 12)}) {
        ZipWriter zip;
        zip.add({.name = "m/data.pkl", .data = test::torch_pickle(kTensors)});
        zip.add({.name = "model/x", .data = "abc", .zip64 = true});
        std::string file = zip.file();
        const size_t entry = file.find("model/x") - 30;
        ++file[entry + at];
        EXPECT_EQ(problem(file), other) << at;
    }
}

// torch writes zeros into the local header, and the sizes and checksum after the data.
TEST(TorchBin, ReadsSizesBehindTheData) {
    for (const bool zip64 : {false, true})
        for (const bool checksum : {false, true}) {
            ZipFile entry{.name = "model/x", .data = "abc", .flags = 0x800, .zip64 = zip64};
            entry.checksum = checksum;
            entry.later = true;
            EXPECT_EQ(problem_with(entry), "");
            entry.descriptor = "PK\x07\x08" + std::string(zip64 ? 20 : 12, '\1');
            EXPECT_EQ(problem_with(entry),
                      "m.bin: zip entry 'model/x' is another one by what stands behind its data "
                      "than by the directory");
            entry.descriptor.clear();
            entry.local = ZipFile::Patch{22, test::little_endian(2, 4)};  // neither zero nor right
            EXPECT_NE(problem_with(entry), "");
        }
}

TEST(TorchBin, RefusesDuplicateEntriesAndRoots) {
    EXPECT_EQ(problem_with({.name = "model/data/0", .data = kTensors[0].data}),
              "m.bin: zip entry 'model/data/0' is there twice");
    EXPECT_EQ(problem_with({.name = "other/data.pkl", .data = "}"}),
              "m.bin: more than one data.pkl in the zip");
    EXPECT_EQ(problem(ZipWriter().add({"model/x", "1"}).file()), "m.bin: no data.pkl in the zip");
    EXPECT_EQ(problem(ZipWriter().add({"data.pkl", "1"}).file()), "m.bin: no data.pkl in the zip");
}

TEST(TorchBin, StoragesOfOtherFoldersAreNotSeen) {
    ZipWriter zip;
    zip.add({"model/data.pkl", test::torch_pickle(kTensors)});
    zip.add({"other/data/0", kTensors[0].data}).add({"model/data/1", kTensors[1].data});
    EXPECT_EQ(problem(zip.file()), "m.bin: storage '0' is not in the file");
}

TEST(TorchBin, RefusesBigEndianFiles) {
    ZipWriter zip;
    zip.add({"m/data.pkl", test::torch_pickle(kTensors)}).add({"m/byteorder", "big"});
    EXPECT_EQ(problem(zip.file()), "m.bin: byte order 'big', expected 'little'");
}

TEST(TorchBin, RefusesTooManyEntries) {
    ZipWriter zip;
    zip.add({"m/data.pkl", test::torch_pickle({})});
    for (int i = 0; i < 66'000; ++i) zip.add({std::to_string(i), ""});
    EXPECT_EQ(problem(zip.file(true)), "m.bin: zip file of more than 65600 entries");
}

TEST(TorchBin, RefusesHostilePickleInsideAZip) {
    const std::string pickle =
        test::PickleWriter().global("os", "system").string("id").raw("\x85R").text();
    EXPECT_EQ(problem(test::torch_file(pickle, {})),
              "m.bin: pickle wants 'os.system', which is not a tensor: refused");
}

TEST(TorchBin, ComparesTheChecksumOfThePickle) {
    std::string file = test::torch_file(test::torch_pickle(kTensors), kTensors, {}, true);
    expect_tensors(file);
    file[file.find("fc.weight")] ^= 1;
    EXPECT_EQ(problem(file), "m.bin: zip entry 'model/data.pkl' is damaged: its checksum differs");
}

TEST(TorchBin, RefusesTwoZipsBackToBack) {
    const std::string file = test::torch_file(kTensors);
    EXPECT_EQ(problem(file + file), "m.bin: damaged zip file");
    EXPECT_EQ(problem(file + "x"), "m.bin: damaged zip file");
    ZipWriter zip64;
    zip64.add({.name = "m/data.pkl", .data = test::torch_pickle({}), .zip64 = true});
    EXPECT_EQ(problem(zip64.file(true)), "");
    EXPECT_EQ(problem(zip64.file(true) + zip64.file(true)), "m.bin: damaged zip file");
}

TEST(TorchBin, RefusesLargePickles) {
    EXPECT_EQ(problem(test::torch_file(std::string((16 << 20) + 1, 'N'), {})),
              "m.bin: zip entry 'model/data.pkl' has 16777217 bytes, expected at most 16777216");
}

TEST(Crc32, IsThatOfZipFiles) {
    EXPECT_EQ(crc32(0, bytes_of("123456789")), 0xCBF43926u);
    std::string text;
    for (int i = 0; i < 1000; ++i) text += char(i * i);
    for (size_t cut = 0; cut < 40; ++cut) {
        const auto bytes = bytes_of(text).subspan(cut);
        EXPECT_EQ(crc32(crc32(0, bytes.first(cut)), bytes.subspan(cut)),
                  test::simple_crc32(text.substr(cut)));
    }
}

TEST(TorchBin, SurvivesDamage) {
    test::expect_survives_damage(test::torch_file(kTensors), read);
    ZipWriter zip64;
    zip64.add({.name = "m/data.pkl", .data = test::torch_pickle({kTensors[0]}), .zip64 = true});
    zip64.add({.name = "m/data/0", .data = kTensors[0].data, .zip64 = true});
    test::expect_survives_damage(zip64.file(true), read);
}

}  // namespace
}  // namespace aerie
