// Torch files and shard indexes that are damaged, contradictory or hostile, through the whole
// program.
#include "io/write_files.h"
#include "tools/bad_case.h"

namespace aerie::test {

namespace {

constexpr const char* kBin = "target-eagle/pytorch_model.bin";

// Replaces the head's weights by this file.
BadCase file(std::string name, std::string bytes, std::vector<std::string> says) {
    says.push_back(kBin);
    return {std::move(name), std::move(says), [bytes = std::move(bytes)](const ModelPair& models) {
                models.write_weights(kBin, bytes);
            }};
}

TorchTensor one_tensor() {
    return {.name = "w", .shape = {2, 2}, .data = "0123456789abcdef"};
}

BadCase tensor(std::string name, const TorchTensor& tensor, std::vector<std::string> says) {
    return file(std::move(name), torch_file({tensor}), std::move(says));
}

BadCase pickle(std::string name, const PickleWriter& pickle, std::vector<std::string> says) {
    return file(std::move(name), torch_file(pickle.text(), {one_tensor()}), std::move(says));
}

// The file may cost 64 MB beside the program's own data.
BadCase within_64_mb(BadCase bad) {
    bad.most_bytes = size_t(64 + 16) << 20;
    return bad;
}

// A pickle that calls a function, as pickles can: if it ran, it would leave a file behind.
BadCase call(std::string name, const std::string& module, const std::string& function) {
    PickleWriter calls;
    calls.raw("}").string("w").global(module, function).raw("(").string("touch pwned").raw("tRs");
    return pickle(std::move(name), calls, {"'" + module + "." + function + "'", "refused"});
}

BadCase zip(std::string name, const ZipFile& data, std::vector<std::string> says) {
    ZipWriter writer;
    writer.add({"model/data.pkl", torch_pickle({one_tensor()})}).add(data);
    return file(std::move(name), writer.file(), std::move(says));
}

BadCase truncated(std::string name, double part) {
    const std::string good = torch_file({one_tensor()});
    return file(std::move(name), good.substr(0, size_t(double(good.size()) * part)), {});
}

template <typename Change>
TorchTensor changed(Change change) {
    TorchTensor tensor = one_tensor();
    change(tensor);
    return tensor;
}

const std::vector<BadCase> kCalls = {
    call("OsSystem", "os", "system"),
    call("PosixSystem", "posix", "system"),
    call("BuiltinsEval", "builtins", "eval"),
    call("Builtin2Eval", "__builtin__", "eval"),
    call("BuiltinsGetattr", "builtins", "getattr"),
    call("SubprocessPopen", "subprocess", "Popen"),
    call("Numpy", "numpy.core.multiarray", "_reconstruct"),
    call("TorchLoad", "torch", "load"),
    call("DottedName", "torch._utils", "_rebuild_tensor_v2.__globals__"),
    call("QuantizedTensor", "torch._utils", "_rebuild_qtensor"),
    pickle("StackGlobal", PickleWriter().string("os").string("system").raw("\x93"),
           {"'os.system'"}),
    pickle("ReduceOnData", PickleWriter().raw("}").string("rm -rf").raw(")Rs"),
           {"no known function"}),
    pickle("CallsStorageClass", PickleWriter().global("torch", "FloatStorage").raw(")R"),
           {"storage class"}),
    pickle("BuildOnTensor", PickleWriter().tensor(one_tensor(), "0").raw("}b"), {"OrderedDict"}),
    pickle("Instance", PickleWriter().raw("(ios\nsystem\n"), {"opcode 105"}),
    pickle("Object", PickleWriter().raw("(").global("collections", "OrderedDict").raw("o"),
           {"opcode 111"}),
    pickle("NewObject", PickleWriter().global("collections", "OrderedDict").raw(")\x81"),
           {"opcode 129"}),
    pickle("Extension", PickleWriter().raw("\x82\x01"), {"opcode 130"}),
    pickle("DeepMarks", PickleWriter().raw(std::string(1'000'000, '(')), {"pickle"}),
    within_64_mb(pickle("Endless", PickleWriter().raw(std::string(5'000'000, 'N')), {"opcodes"})),
    within_64_mb(
        pickle("EndlessDicts", PickleWriter().raw(std::string(4'000'000, '}')), {"opcodes"})),
    within_64_mb(pickle("EndlessTuples", PickleWriter().raw("N" + std::string(4'000'000, '\x85')),
                        {"opcodes"})),
    pickle("HugeMemo", PickleWriter().raw("}r\xFF\xFF\xFF\xFF"), {"memo"}),
    pickle("EmptyStack", PickleWriter(), {"stack is empty"}),
    pickle("NoDict", PickleWriter().raw("N"), {"no dict"}),
    pickle("NumberForTensor", PickleWriter().raw("}").string("w").raw("K\x01s"), {"'w'"}),
    pickle("StringPastEnd", PickleWriter().raw("X\xFF\xFF\xFF\x7F"), {"ends early"}),
};

const std::vector<BadCase> kTensors = {
    tensor("StorageSmaller", changed([](auto& t) { t.elements = 5; }), {"expected 20"}),
    tensor("StorageNegative", changed([](auto& t) { t.elements = -4; }), {"storage"}),
    tensor("StorageOverflow", changed([](auto& t) { t.elements = int64_t(1) << 62; }),
           {"overflows"}),
    tensor("StorageMissing", changed([](auto& t) { t.key = "7"; }), {"'7'", "not in the file"}),
    tensor("StorageOutsideZip", changed([](auto& t) { t.key = "../../../etc/passwd"; }),
           {"not in the file"}),
    tensor("StorageUnknownType", changed([](auto& t) { t.storage_class = "UntypedStorage"; }),
           {"torch.UntypedStorage"}),
    tensor("OffsetOutside", changed([](auto& t) { t.offset = 1; }), {"outside its storage"}),
    tensor("OffsetNegative", changed([](auto& t) { t.offset = -1; }), {"offset"}),
    tensor("OffsetOverflow", changed([](auto& t) { t.offset = INT64_MAX; }), {"overflows"}),
    tensor("ShapeOutside", changed([](auto& t) {
               t.shape = {4, 4};
           }),
           {"outside its storage"}),
    tensor("ShapeNegative", changed([](auto& t) {
               t.shape = {-2, -2};
           }),
           {"negative"}),
    tensor("ShapeOverflow", changed([](auto& t) {
               t.shape = {1ll << 40, 1ll << 40};
           }),
           {"overflows"}),
    tensor("ThousandDimensions", changed([](auto& t) { t.shape = std::vector<int64_t>(1000, 1); }),
           {"8 dimensions"}),
    tensor("Transposed", changed([](auto& t) {
               t.strides = {1, 2};
           }),
           {"not contiguous"}),
    tensor("StridesOverlap", changed([](auto& t) {
               t.strides = {0, 0};
           }),
           {"not contiguous"}),
    tensor("StridesTooFew", changed([](auto& t) { t.strides = {1}; }), {"strides"}),
    file("Twice", torch_file({one_tensor(), one_tensor()}), {"'w'", "twice"}),
};

const std::vector<BadCase> kZips = {
    file("Legacy", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", {"not a zip"}),
    file("Tar", std::string("pickle") + std::string(251, '\0') + "ustar" + std::string(762, '\0'),
         {"not a zip"}),
    file("Empty", "", {"not a zip"}),
    truncated("CutEarly", 0.1),
    truncated("CutHalf", 0.5),
    truncated("CutLate", 0.98),
    zip("Compressed", {.name = "model/data/0", .data = one_tensor().data, .method = 8},
        {"compressed"}),
    zip("Encrypted", {.name = "model/data/0", .data = one_tensor().data, .flags = 1},
        {"encrypted"}),
    zip("Overlapping", {.name = "model/data/0", .data = one_tensor().data, .claimed_place = 0},
        {"model/data/0"}),
    zip("EntryPastEnd",
        {.name = "model/data/0", .data = one_tensor().data, .claimed_size = 0x7FFFFFFF},
        {"model/data/0"}),
    zip("SameName", {.name = "model/data.pkl", .data = "N."}, {"model/data.pkl"}),
    zip("TwoPickles", {.name = "other/data.pkl", .data = "N."}, {"more than one data.pkl"}),
    zip("BigEndian", {.name = "model/byteorder", .data = "big"}, {"'big'"}),
    file("NoPickle", ZipWriter().add({"model/data/0", "1234"}).file(), {"no data.pkl"}),
    file("NoEntries", ZipWriter().file(), {}),
    file("PickleEmpty", torch_file("", {one_tensor()}), {"pickle"}),
};

// An index with this map, beside two shards that both hold the tensor `w`.
BadCase index(std::string name, const std::string& map, std::vector<std::string> says) {
    return {std::move(name), std::move(says), [=](const ModelPair& models) {
                models.write_weights("target/model.safetensors.index.json",
                                     "{\"weight_map\":" + map + "}");
                const std::string shard = SafetensorsWriter().add("w", "F32", "[1]", "1234").file();
                models.write("target/a.safetensors", shard);
                models.write("target/b.safetensors", shard);
                models.write("outside.safetensors", shard);
            }};
}

const std::vector<BadCase> kIndexes = {
    index("Upwards", R"({"w":"../outside.safetensors"})", {"'../outside.safetensors'"}),
    index("FarUpwards", R"({"w":"../../x"})", {"'../../x'"}),
    index("Absolute", R"({"w":"/etc/passwd"})", {"'/etc/passwd'"}),
    index("Subfolder", R"({"w":"a/b.safetensors"})", {"'a/b.safetensors'"}),
    index("Backslash", R"({"w":"..\\x"})", {"'..\\x'"}),
    index("Dots", R"({"w":".."})", {"'..'"}),
    index("EmptyName", R"({"w":""})", {"plain file name"}),
    index("NulInName", R"({"w":"a.safetensors\u0000.x"})", {"plain file name"}),
    index("Number", R"({"w":1})", {"'w'"}),
    index("MissingShard", R"({"w":"c.safetensors"})", {"c.safetensors"}),
    index("AbsentTensor", R"({"w":"a.safetensors","v":"a.safetensors"})", {"'v'", "a.safetensors"}),
    index("TensorTwice", R"({"w":"a.safetensors","v":"b.safetensors"})", {"'w'", "two shards"}),
    index("Itself", R"({"w":"model.safetensors.index.json"})", {"model.safetensors.index.json"}),
    index("EmptyMap", "{}", {"index.json", "empty"}),
    index("MapNoObject", "[]", {"index.json", "weight_map"}),
    index("DuplicateKey", R"({"w":"a.safetensors","w":"b.safetensors"})", {"duplicate key 'w'"}),
    index("NotJson", "{", {"index.json", "not JSON"}),
    BadCase{"LinkOutside",
            {"a.safetensors", "outside"},
            [](const ModelPair& models) {
                models.write_weights("target/model.safetensors.index.json",
                                     R"({"weight_map":{"w":"a.safetensors"}})");
                models.write("outside.safetensors", "");
                std::filesystem::create_symlink("../outside.safetensors",
                                                models.folder() / "target/a.safetensors");
            }},
};

}  // namespace

}  // namespace aerie::test

AERIE_BAD_INPUT(PickleCall, kCalls)
AERIE_BAD_INPUT(PickleTensor, kTensors)
AERIE_BAD_INPUT(TorchZip, kZips)
AERIE_BAD_INPUT(ShardIndex, kIndexes)
