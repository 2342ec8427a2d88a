// The restricted pickle reader reads what torch writes and refuses everything else.
#include "io/damage.h"
#include "io/torch/torch_bin.h"
#include "io/write_files.h"

namespace aerie {
namespace {

using test::error_of;
using test::little_endian;
using test::PickleWriter;
using test::TorchTensor;

const std::string kData = "0123456789abcdef";  // storage "0"

std::vector<NamedTensor> read(const std::string& pickle) {
    const std::vector<TorchStorage> storages = {{"0", {{100, kData.size()}}}, {"1", {}}};
    return read_torch_pickle(pickle, storages, "m.bin");
}
std::string problem(const std::string& pickle) {
    return error_of([&] { read(pickle); });
}
// The error for opcodes in the place of a value of the dict.
std::string problem_of_value(const PickleWriter& value) {
    const std::string text = value.text();
    return problem(
        PickleWriter().raw("}").string("w").raw(text.substr(2, text.size() - 3)).raw("s").text());
}
TorchTensor tensor(std::vector<int64_t> shape) {
    return {.name = "w", .shape = std::move(shape), .data = kData};
}
std::string problem_of_tensor(const TorchTensor& tensor) {
    return problem_of_value(PickleWriter().tensor(tensor, tensor.key.value_or("0")));
}

TEST(TorchPickle, ReadsTensorsOfEveryType) {
    const std::vector<std::tuple<std::string, int, DType>> types = {
        {"FloatStorage", 4, DType::F32},
        {"HalfStorage", 2, DType::F16},
        {"BFloat16Storage", 2, DType::BF16},
        {"LongStorage", 8, DType::I64},
        {"BoolStorage", 1, DType::Bool}};
    for (const auto& [storage_class, bytes, dtype] : types) {
        const TorchTensor one{.name = "w",
                              .storage_class = storage_class,
                              .element_bytes = bytes,
                              .shape = {16 / bytes},
                              .data = kData,
                              .key = "0"};
        const auto tensors = read(test::torch_pickle({one}));
        ASSERT_EQ(tensors.size(), 1u);
        EXPECT_EQ(tensors[0].name, "w");
        EXPECT_EQ(tensors[0].dtype, dtype);
        EXPECT_EQ(tensors[0].shape, one.shape);
        EXPECT_EQ(tensors[0].data.size_bytes, kData.size());
    }
}

TEST(TorchPickle, SharedStoragesAndOffsets) {
    TorchTensor first = tensor({4}), second = tensor({1, 2});
    first.key = second.key = "0";
    second.name = "v";
    second.offset = 2;
    const auto tensors = read(test::torch_pickle({first, second}));
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors[0].data.begin, 100u);
    EXPECT_EQ(tensors[1].data.begin, 108u);
    EXPECT_EQ(tensors[1].data.size_bytes, 8u);
}

TEST(TorchPickle, StridesOfSingleAndEmptyDimensionsDoNotMatter) {
    TorchTensor one = tensor({1, 4, 1});
    one.strides = {{77, 1, -5}};
    EXPECT_EQ(problem_of_tensor(one), "");
    one = tensor({3, 0});
    one.strides = {{9, 9}};
    EXPECT_EQ(problem_of_tensor(one), "");
    EXPECT_EQ(problem_of_tensor(tensor({})), "");
}

TEST(TorchPickle, EmptyTensorsOfAnyShapeAreContiguous) {
    // The product of the other dimensions overflows: computing it would be undefined behaviour.
    TorchTensor one = tensor({0, int64_t(1) << 40, int64_t(1) << 20});
    EXPECT_EQ(problem_of_tensor(one), "");
    one = tensor({int64_t(1) << 40, int64_t(1) << 20, 0});
    EXPECT_EQ(problem_of_tensor(one), "");
}

TEST(TorchPickle, RefusesTransposedTensors) {
    TorchTensor one = tensor({2, 2});
    one.strides = {{1, 2}};
    EXPECT_EQ(problem_of_tensor(one), "m.bin: tensor 'w' is not contiguous");
    one.strides = {{0, 0}};
    EXPECT_EQ(problem_of_tensor(one), "m.bin: tensor 'w' is not contiguous");
}

TEST(TorchPickle, ReadsParametersInAnOrderedDictWithState) {
    PickleWriter pickle;
    pickle.global("collections", "OrderedDict").raw(")R(").string("w");
    pickle.global("torch._utils", "_rebuild_parameter").raw("(").tensor(tensor({4}), "0");
    pickle.raw("\x88").global("collections", "OrderedDict").raw(")RtRu");
    pickle.raw("}").string("_metadata").raw("}s").raw("b");
    const auto tensors = read(pickle.text());
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(tensors[0].shape_text(), "[4]");
}

TEST(TorchPickle, ReadsProtocol4) {
    const auto text = [](const std::string& value) {
        return "\x8C" + little_endian(value.size(), 1) + value + "\x94";
    };
    const std::string pickle = std::string("\x80\x04\x95", 3) + little_endian(0, 8) + "}\x94" +
                               text("w") + text("torch._utils") + text("_rebuild_tensor_v2") +
                               "\x93\x94((" + text("storage") + text("torch") +
                               text("FloatStorage") + "\x93" + text("0") + text("cpu") +
                               "K\x04tQK" + std::string(1, '\0') + "K\x04\x85K\x01\x85\x89" +
                               text("collections") + text("OrderedDict") + "\x93)RtRs.";
    const auto tensors = read(pickle);
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(tensors[0].name, "w");
    EXPECT_EQ(tensors[0].data.size_bytes, 16u);
}

TEST(TorchPickle, RefusesEveryOtherGlobalByName) {
    const std::vector<std::pair<std::string, std::string>> globals = {
        {"os", "system"},
        {"posix", "system"},
        {"subprocess", "Popen"},
        {"builtins", "eval"},
        {"builtins", "exec"},
        {"builtins", "getattr"},
        {"__builtin__", "eval"},
        {"nt", "system"},
        {"torch", "load"},
        {"torch.hub", "load"},
        {"torch.serialization", "load"},
        {"torch.storage", "_load_from_bytes"},
        {"torch", "FloatStorage "},
        {"torch", "DoubleStorage"},
        {"torch", "Tensor"},
        {"torch._utils", "_rebuild_tensor"},
        {"collections", "deque"},
        {"collections.OrderedDict", ""},
        {"", "collections.OrderedDict"},
        {"torch._utils._rebuild_tensor_v2", "__globals__"},
        {"runpy", "_run_code"},
        {"pickle", "loads"},
        {"webbrowser", "open"},
        {"importlib", "import_module"},
        {"numpy.core.multiarray", "_reconstruct"},
        {"_codecs", "encode"}};
    for (const auto& [module, name] : globals) {
        EXPECT_EQ(
            problem_of_value(PickleWriter().global(module, name)),
            "m.bin: pickle wants '" + module + "." + name + "', which is not a tensor: refused");
        EXPECT_EQ(
            problem_of_value(PickleWriter().string(module).string(name).raw("\x93")),
            "m.bin: pickle wants '" + module + "." + name + "', which is not a tensor: refused");
    }
    EXPECT_EQ(problem(std::string("\x80\x02", 2) + "cos\nsystem\nX\x02" + std::string(3, '\0') +
                      "id\x85R."),
              "m.bin: pickle wants 'os.system', which is not a tensor: refused");
}

TEST(TorchPickle, RefusesEveryOtherOpcode) {
    const std::string known = "NKMJXc()}tqrhjsubQR.";
    for (int opcode = 0; opcode < 256; ++opcode) {
        const bool is_known = known.find(char(opcode)) != std::string::npos ||
                              (opcode >= 0x85 && opcode <= 0x8A) || opcode == 0x8C ||
                              opcode == 0x8D || (opcode >= 0x93 && opcode <= 0x95);
        if (is_known) continue;
        EXPECT_EQ(
            problem_of_value(PickleWriter().raw(std::string(1, char(opcode)))),
            "m.bin: pickle opcode " + std::to_string(opcode) + " is not one that tensors need");
    }
}

// Past vulnerabilities: SETITEM on something that is no dict, BUILD on any object (CVE-2025-32434,
// CVE-2026-24747).
TEST(TorchPickle, RefusesItemsAndStateOfAnythingButDicts) {
    EXPECT_NE(problem_of_value(PickleWriter().raw(")NNs")), "");
    EXPECT_NE(problem_of_value(PickleWriter().tensor(tensor({4}), "0").raw("NNs")), "");
    EXPECT_NE(problem_of_value(PickleWriter().raw("}N}b")), "");
    EXPECT_NE(problem_of_value(PickleWriter().raw("}}b")), "");
    EXPECT_NE(problem_of_value(PickleWriter().global("collections", "OrderedDict").raw("}b")), "");
    EXPECT_NE(problem_of_value(PickleWriter().tensor(tensor({4}), "0").raw("}b")), "");
    EXPECT_NE(problem(PickleWriter().raw("(u").text()), "");
    EXPECT_NE(problem(PickleWriter().raw("}(Nu").text()), "");
}

TEST(TorchPickle, RefusesCallsOfAnythingButTheKnownFunctions) {
    EXPECT_NE(problem_of_value(PickleWriter().raw("N)R")), "");
    EXPECT_NE(problem_of_value(PickleWriter().string("os.system").raw(")R")), "");
    EXPECT_NE(problem_of_value(PickleWriter().global("torch", "FloatStorage").raw(")R")), "");
    EXPECT_NE(problem_of_value(PickleWriter().global("collections", "OrderedDict").raw("NR")), "");
    EXPECT_NE(problem_of_value(PickleWriter().global("collections", "OrderedDict").raw("N\x85R")),
              "");
    EXPECT_NE(
        problem_of_value(PickleWriter().global("torch._utils", "_rebuild_tensor_v2").raw(")R")),
        "");
    EXPECT_NE(problem_of_value(
                  PickleWriter().global("torch._utils", "_rebuild_parameter").raw("NNN\x87R")),
              "");
}

TEST(TorchPickle, StorageMustBeAsLargeAsItsEntry) {
    for (const int64_t elements : {3, 5, 0, -1}) {
        TorchTensor one = tensor({1});
        one.elements = elements;
        EXPECT_NE(problem_of_tensor(one), "") << elements;
    }
    TorchTensor one = tensor({1});
    one.elements = 5;
    EXPECT_EQ(problem_of_tensor(one), "m.bin: storage '0' has 16 bytes, expected 20");
    one.elements = INT64_MAX;
    EXPECT_NE(problem_of_tensor(one).find("overflows"), std::string::npos);
    one = tensor({1});
    one.key = "../0";
    EXPECT_EQ(problem_of_tensor(one), "m.bin: storage '../0' is not in the file");
}

TEST(TorchPickle, TensorsMustLieInsideTheirStorage) {
    const std::vector<std::pair<std::vector<int64_t>, int64_t>> outside = {
        {{5}, 0},         {{4}, 1},
        {{1}, 4},         {{1}, -1},
        {{-1}, 0},        {{4, 4}, 0},
        {{0}, 5},         {{1}, INT64_MAX},
        {{INT64_MAX}, 0}, {{INT64_MAX}, 1},
        {{1}, INT64_MIN}, {{1LL << 32, 1LL << 32}, 0},
        {{-2, -2}, 0},    {{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0}};
    for (const auto& [shape, offset] : outside) {
        TorchTensor one = tensor(shape);
        one.offset = offset;
        one.strides = std::vector<int64_t>(shape.size(), 1);
        EXPECT_NE(problem_of_tensor(one), "") << offset;
    }
    TorchTensor one = tensor({2, 2});
    one.strides = {{1}};
    EXPECT_NE(problem_of_tensor(one), "");
}

TEST(TorchPickle, RefusesValuesThatAreNoTensors) {
    EXPECT_EQ(problem_of_value(PickleWriter().integer(1)), "m.bin: 'w' is no tensor");
    EXPECT_EQ(problem_of_value(PickleWriter().raw("}")), "m.bin: 'w' is no tensor");
    EXPECT_EQ(problem(PickleWriter().raw("N").text()), "m.bin: pickle is no dict of tensors");
    EXPECT_NE(problem(PickleWriter().raw("}K\x01").tensor(tensor({4}), "0").raw("s").text()), "");
    TorchTensor one = tensor({4});
    one.key = "0";
    EXPECT_EQ(problem(test::torch_pickle({one, one})), "m.bin: tensor 'w' is there twice");
}

TEST(TorchPickle, RefusesBrokenStacks) {
    for (const char* opcodes : {"",
                                "N",
                                "t",
                                "u",
                                "(",
                                "NN",
                                "b",
                                "R",
                                "Q",
                                "q",
                                "s",
                                "\x85",
                                "\x87",
                                "(N\x86t",
                                "h",
                                "j",
                                "\x93",
                                "\x94",
                                "X\xFF\xFF\xFF\x7Fxx",
                                "cos",
                                "cos\nx",
                                "}N(Ns",
                                "\x8A",
                                "\x8A\x09"
                                "123456789"}) {
        EXPECT_NE(problem(std::string("\x80\x02", 2) + opcodes), "") << opcodes;
        EXPECT_NE(problem(std::string("\x80\x02", 2) + opcodes + "."), "") << opcodes;
    }
    for (const char* text : {"", "\x80", "\x80\x01}.", "\x80\x06}.", "}.", "(dp0\n."}) {
        EXPECT_NE(problem(text), "") << text;
    }
    EXPECT_NE(problem(PickleWriter().raw("}").text() + "x"), "");
}

TEST(TorchPickle, BoundsWhatAHostilePickleCosts) {
    // Nesting without recursion: 900,000 tuples one inside the other.
    std::string deep = ")";
    for (int i = 0; i < 900'000; ++i) deep += '\x85';
    EXPECT_EQ(problem_of_value(PickleWriter().raw(deep)), "m.bin: 'w' is no tensor");
    EXPECT_EQ(problem(PickleWriter().raw(std::string(5'000'000, '(')).text()),
              "m.bin: pickle of more than 1000000 opcodes");
    EXPECT_EQ(problem(PickleWriter().raw("}r\xFF\xFF\xFF\xFF").text()),
              "m.bin: pickle memo is too large");
    // One long shape, used again and again.
    PickleWriter again;
    again.raw("(");
    for (int i = 0; i < 100'000; ++i) again.raw("K\x01");
    EXPECT_NE(problem_of_value(again.raw("tq").raw(std::string(1, '\0'))), "");
    TorchTensor one = tensor(std::vector<int64_t>(100'000, 1));
    EXPECT_EQ(problem_of_tensor(one), "m.bin: pickle: tensor shape of over 8 dimensions");
    // A dict that contains itself.
    EXPECT_NE(problem(PickleWriter()
                          .raw("}q")
                          .raw(std::string("\0", 1))
                          .string("w")
                          .raw("h")
                          .raw(std::string("\0", 1))
                          .raw("s")
                          .text()),
              "");
}

TEST(TorchPickle, SurvivesDamage) {
    TorchTensor one = tensor({2, 2}), two = tensor({1});
    one.key = two.key = "0";
    two.name = "v";
    test::expect_survives_damage(test::torch_pickle({one, two}), read);
}

}  // namespace
}  // namespace aerie
