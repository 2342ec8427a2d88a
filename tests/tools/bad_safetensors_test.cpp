// Safetensors files that are damaged, contradictory or hostile, through the whole program.
#include "io/write_files.h"
#include "tools/bad_case.h"

namespace aerie::test {

namespace {

// Replaces the target's weights by this file.
BadCase weights(std::string name, std::string file, std::vector<std::string> says) {
    says.push_back(kWeights);
    return {std::move(name), std::move(says),
            [file = std::move(file)](const ModelPair& models) { models.write(kWeights, file); }};
}

// A file with these members in its header.
BadCase header(std::string name, const std::string& members, std::vector<std::string> says,
               const std::string& data = "12345678") {
    return weights(std::move(name), safetensors_file("{" + members + "}", data), std::move(says));
}

// A file with one entry `w`, which has these three fields.
BadCase entry(std::string name, const std::string& dtype, const std::string& shape,
              const std::string& offsets, std::vector<std::string> says) {
    says.push_back("'w'");
    return header(
        std::move(name),
        R"("w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}",
        std::move(says));
}

BadCase truncated(std::string name, size_t bytes, std::vector<std::string> says) {
    says.push_back(kWeights);
    return {std::move(name), std::move(says),
            [=](const ModelPair& models) { models.truncate(kWeights, bytes); }};
}

// The good file, with the first occurrence of a text in its header replaced by one of equal length.
BadCase edited(std::string name, const std::string& from, const std::string& to,
               std::vector<std::string> says) {
    says.push_back(kWeights);
    return {std::move(name), std::move(says), [=](const ModelPair& models) {
                std::string file = models.read(kWeights);
                ASSERT_NE(file.find(from), std::string::npos);
                ASSERT_EQ(from.size(), to.size());
                models.write(kWeights, file.replace(file.find(from), from.size(), to));
            }};
}

std::string ones(int count) {
    std::string list = "1";
    for (int i = 1; i < count; ++i) list += ",1";
    return "[" + list + "]";
}

const std::vector<BadCase> kFiles = {
    BadCase{"Missing",
            {"target: no model.safetensors"},
            [](const ModelPair& models) { models.remove(kWeights); }},
    BadCase{"IsFolder",
            {"model.safetensors", "not a regular file"},
            [](const ModelPair& models) {
                models.remove(kWeights);
                std::filesystem::create_directory(models.folder() / kWeights);
            }},
    BadCase{"IsLinkOutside",
            {"model.safetensors", "outside"},
            [](const ModelPair& models) {
                models.remove(kWeights);
                std::filesystem::create_symlink("/etc/passwd", models.folder() / kWeights);
            }},
    BadCase{"IsLinkToNothing",
            {"model.safetensors", "No such file"},
            [](const ModelPair& models) {
                models.remove(kWeights);
                std::filesystem::create_symlink("absent", models.folder() / kWeights);
            }},
    weights("IsTorch", torch_file({{.name = "w", .shape = {1}, .data = "1234"}}), {"header"}),
    weights("IsText", "Not a model at all, but a page of text.\n", {"header"}),
    weights("HeaderLongerThanFile", little_endian(1000, 8) + "{}", {"header of 1000 bytes"}),
    weights("HeaderOver100MB", little_endian(100'000'001, 8) + "{}", {"100000001"}),
    weights("HeaderLengthNegative", std::string(8, '\xFF') + "{}", {"18446744073709551615"}),
    weights("HeaderNoJson", safetensors_file("w: F32", ""), {"not JSON"}),
    weights("HeaderArray", safetensors_file("[]", ""), {"no JSON object"}),
    weights("HeaderNested",
            safetensors_file(std::string(100'000, '[') + std::string(100'000, ']'), ""),
            {"nested deeper"}),
    weights("HeaderNul", safetensors_file(std::string(64, '\0'), ""), {"not JSON"}),
    truncated("Empty", 0, {"0 bytes"}),
    truncated("CutInLength", 7, {"7 bytes"}),
    truncated("CutInHeader", 200, {"header"}),
    truncated("CutInData", 5000, {"data"}),
    BadCase{"CutByOneByte",
            {kWeights, "data"},
            [](const ModelPair& models) {
                const auto size = std::filesystem::file_size(models.folder() / kWeights);
                models.truncate(kWeights, size - 1);
            }},
    BadCase{"OneByteTooMany",
            {kWeights, "bytes of data"},
            [](const ModelPair& models) { models.write(kWeights, models.read(kWeights) + "x"); }},
};

const std::vector<BadCase> kEntries = {
    entry("ThousandDimensions", R"("F32")", ones(1000), "[0,4]", {"1000 dimensions"}),
    entry("OffsetsPastEnd", R"("F32")", "[2]", "[8,16]", {"data_offsets"}),
    entry("OffsetsBackwards", R"("F32")", "[1]", "[8,4]", {"data_offsets"}),
    entry("OffsetsNegative", R"("F32")", "[1]", "[-4,0]", {"data_offsets"}),
    entry("OffsetsThree", R"("F32")", "[1]", "[0,4,8]", {"data_offsets"}),
    entry("OffsetsHuge", R"("F32")", "[1]", "[0,18446744073709551615]", {"data_offsets"}),
    entry("OffsetsNoArray", R"("F32")", "[1]", "4", {"data_offsets"}),
    entry("ShapeNegative", R"("F32")", "[-1]", "[0,4]", {"shape"}),
    entry("ShapeOverflow", R"("F32")", "[4294967296,4294967296]", "[0,8]", {"overflows"}),
    entry("ShapeOverflowToFit", R"("F32")", "[4611686018427387906]", "[0,8]", {"overflows"}),
    entry("ShapeBeyondInt64", R"("F32")", "[1e300]", "[0,8]", {"shape"}),
    entry("ShapeTooBigForData", R"("F32")", "[3]", "[0,8]", {"needs 12 bytes"}),
    entry("ShapeTooSmallForData", R"("F16")", "[3]", "[0,8]", {"needs 6 bytes"}),
    entry("ShapeText", R"("F32")", R"("[2]")", "[0,8]", {"shape"}),
    entry("TypeUnknown", R"("F8_E4M3")", "[8]", "[0,8]", {"'F8_E4M3'"}),
    entry("TypeNumber", "32", "[2]", "[0,8]", {"dtype"}),
    header("FieldMissing", R"("w":{"dtype":"F32","shape":[2]})", {"'w'", "data_offsets"}),
    header("EntryNoObject", R"("w":17)", {"'w'"}),
    header("Overlapping",
           safetensors_entry("a", "F32", "[2]", 0, 8) + "," +
               safetensors_entry("b", "F32", "[1]", 4, 8),
           {"overlaps"}),
    header("Gap",
           safetensors_entry("a", "F32", "[0]", 0, 0) + "," +
               safetensors_entry("b", "F32", "[1]", 4, 8),
           {"gap"}),
    header("NothingUsed", "", {"8 bytes of data"}),
    header("Twice",
           safetensors_entry("a", "F32", "[1]", 0, 4) + "," +
               safetensors_entry("a", "F32", "[1]", 4, 8),
           {"duplicate key 'a'"}),
    header("MetadataNoStrings", R"("__metadata__":{"a":1})", {"__metadata__"}),
    header("NameWithEscapes", R"("\u001b[31m\nw":{"dtype":"F4","shape":[],"data_offsets":[0,0]})",
           {"'?[31m?w'"}),
};

// Readable files that do not fit their config.json.
const std::vector<BadCase> kMisfits = {
    BadCase{"TensorMissing",
            {"target: no tensor 'model.embed_tokens.weight' of shape [4096, 32]"},
            [](const ModelPair& models) {
                models.write(kWeights, SafetensorsWriter().add("w", "F32", "[1]", "1234").file());
            }},
    edited("WrongShape", "[4096,32]", "[32,4096]", {"embed_tokens", "[32, 4096]", "[4096, 32]"}),
    edited("IntegerWeights", R"("dtype":"F16")", R"("dtype":"I16")", {"'I16'"}),
    BadCase{
        .name = "MoreLayersThanTensors",
        .says = {"model.layers.1.self_attn"},
        .damage = [](const ModelPair& models) { models.set(kConfig, "num_hidden_layers", "2"); }},
    BadCase{.name = "VocabularyOtherThanTensors",
            .says = {"embed_tokens", "[4096, 32]", "[5000, 32]"},
            .damage = [](const ModelPair& models) { models.set(kConfig, "vocab_size", "5000"); },
            .flags = {"--draft", "none"}},
    BadCase{.name = "HiddenOtherThanTensors",
            .says = {"embed_tokens", "[4096, 32]", "[4096, 64]"},
            .damage = [](const ModelPair& models) { models.set(kConfig, "hidden_size", "64"); },
            .flags = {"--draft", "none"}},
    BadCase{
        .name = "FfnOtherThanTensors",
        .says = {"gate_proj", "[48, 32]", "[262144, 32]"},
        .damage =
            [](const ModelPair& models) { models.set(kConfig, "intermediate_size", "262144"); }},
    BadCase{.name = "EveryLogitNan",
            .says = {"NaN", "weights are damaged"},
            .damage =
                [](const ModelPair& models) {
                    std::string file = models.read(kWeights);
                    const size_t data = 8 + 4096;  // beyond the header, at a whole f16 value
                    std::fill(file.begin() + ptrdiff_t(data), file.end(), '\xFF');
                    models.write(kWeights, file);
                }},
};

}  // namespace

}  // namespace aerie::test

AERIE_BAD_INPUT(SafetensorsFile, kFiles)
AERIE_BAD_INPUT(SafetensorsEntry, kEntries)
AERIE_BAD_INPUT(SafetensorsMisfit, kMisfits)
