#include "seeds.h"

#include <fstream>
#include <iterator>

#include "io/write_files.h"
#include "io/write_gguf.h"
#include "text/small_tokenizers.h"
#include "text/write_model.h"

namespace aerie::fuzz {

namespace {

namespace fs = std::filesystem;
using namespace aerie::test;

void add_file(const fs::path& file, std::vector<std::string>& seeds) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// The configurations of the repository's models.
std::vector<std::string> json_config_seeds(const fs::path& repository) {
    std::vector<std::string> seeds;
    for (const auto& model : fs::directory_iterator(repository / "models")) {
        for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json"})
            if (fs::exists(model.path() / name)) add_file(model.path() / name, seeds);
    }
    return seeds;
}

std::vector<std::string> jinja_seeds(const fs::path& repository) {
    std::vector<std::string> seeds;
    for (const auto& file : fs::directory_iterator(repository / "tests/data/jinja"))
        if (file.path().extension() == ".jinja") add_file(file.path(), seeds);
    return seeds;
}

std::vector<std::string> safetensors_seeds() {
    return {SafetensorsWriter().file(),
            SafetensorsWriter()
                .add("a.weight", "F32", "[2, 1]", "12345678")
                .add("b", "BOOL", "[3]", "abc")
                .add("c", "I64", "[0]", "")
                .file(),
            safetensors_file(safetensors_header({"\"__metadata__\":{\"format\":\"pt\"}",
                                                 safetensors_entry("w", "BF16", "[]", 0, 2)}),
                             "xy")};
}

const std::vector<TorchTensor> kTensors = {
    {.name = "w", .shape = {2, 2}, .data = "0123456789abcdef"},
    {.name = "b", .storage_class = "HalfStorage", .element_bytes = 2, .shape = {0}, .data = ""}};

// Every kind of metadata value, and a tensor of each type.
std::vector<std::string> gguf_seeds() {
    GgufWriter values;
    values.u32("general.alignment", 32).string("s", "text").strings("words", {"a", "", "bc"});
    values.array("ids", 5, 2, "12345678").array("flags", 7, 2, std::string("\0\1", 2));
    constexpr std::pair<uint32_t, size_t> kNumbers[] = {{0, 1}, {1, 1}, {2, 2},  {3, 2},  {5, 4},
                                                        {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
    for (const auto& [type, bytes] : kNumbers)
        values.number("n" + std::to_string(type), type, 1, bytes);
    struct Type {
        uint32_t number;
        uint64_t elements;
        size_t bytes;
    };
    constexpr Type kTypes[] = {{0, 1, 4},      {1, 1, 2},      {30, 1, 2},     {8, 32, 34},
                               {2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
                               {10, 256, 84},  {11, 256, 110}, {12, 256, 144}, {13, 256, 176},
                               {14, 256, 210}, {20, 32, 18},   {23, 256, 136}};
    GgufWriter tensors;
    for (const Type& type : kTypes)
        tensors.tensor({.name = "t" + std::to_string(type.number),
                        .type = type.number,
                        .dims = {type.elements, 2},
                        .data = std::string(2 * type.bytes, 'x')});
    return {GgufWriter().file(), values.file(), tensors.file()};
}

std::vector<std::string> torch_bin_seeds() {
    ZipWriter zip64;
    zip64.add({.name = "m/data.pkl", .data = torch_pickle({kTensors[0]}), .zip64 = true});
    zip64.add({.name = "m/data/0", .data = kTensors[0].data, .zip64 = true});
    return {torch_file({}), torch_file(kTensors), zip64.file(), zip64.file(true)};
}

std::vector<std::string> torch_pickle_seeds() {
    PickleWriter parameters;
    parameters.global("collections", "OrderedDict").raw(")R(").string("w");
    parameters.global("torch._utils", "_rebuild_parameter").raw("(").tensor(kTensors[0], "0");
    parameters.raw("\x88").global("collections", "OrderedDict").raw(")RtRu");
    parameters.raw("}").string("_metadata").raw("}sb");
    PickleWriter opcodes;
    opcodes.raw("}q\x01\x94h\x01j\x02").integer(int64_t(1) << 40).raw("K\x01M\x02\x03N\x88\x89");
    opcodes.raw("\x8C\x02os\x8C\x06system\x93\x85\x86\x87R");
    return {torch_pickle({}), torch_pickle(kTensors), parameters.text(), opcodes.text()};
}

std::vector<std::string> tokenizer_seeds() {
    const std::vector<Piece> pieces = {{"a", -1},
                                       {"aa", -2},
                                       {"\xE2\x96\x81", -3},
                                       {"<x>", 0, kUserDefined},
                                       {"<xy>", 0, kUserDefined},
                                       {"12", -4, kUnused}};
    const std::string self_test = bytes_field(4, bytes_field(1, bytes_field(1, "a")));
    return {ModelWriter{.pieces = pieces, .byte_fallback = false}.file(),
            ModelWriter{.pieces = pieces, .byte_fallback = false, .model_type = 1}.file(),
            ModelWriter{.pieces = pieces, .byte_fallback = false, .extra = self_test}.file(),
            ModelWriter{.pieces = pieces}.file()};
}

std::vector<std::string> tokenizer_json_seeds() {
    return {small_byte_level_json(), small_sentencepiece_json()};
}

// The first byte chooses the file that the rest stands for.
std::vector<std::string> small_file_seeds() {
    return {
        std::string(1, '\0') + R"({"weight_map":{"w":"a.safetensors"}})",
        "\1"
        R"({"add_bos_token":true,"bos_token":"<s>","eos_token":{"content":"</s>"},"chat_template":"x"})",
        "\2[[0],[1],[0,0],[0,1]]"};
}

std::vector<std::string> text_stream_seeds() {
    return {"hello, world. stop", "\xE2\x82\xAC\xFF\xE2\x82xx\xE2\x82\xAC", "aaaaaaab"};
}

const std::string kChat =
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"n":2,"seed":1,)"
    R"("stop":["x"],"logit_bias":{"5":-1.5},"logprobs":true,"top_logprobs":3,"stream":true,)"
    R"("stream_options":{"include_usage":true},"max_completion_tokens":9,"min_p":0.1})";
const std::string kText =
    R"({"prompt":[1,2,3],"temperature":0.5,"top_p":0.9,"top_k":4,"max_tokens":5,"logprobs":2,)"
    R"("repetition_penalty":1.1,"frequency_penalty":1,"presence_penalty":-1,"draft":false})";
const std::string kTokens = R"({"content":"a","add_special":true})";

std::vector<std::string> json_request_seeds() {
    const std::string common =
        R"("n":2,"seed":-1,"temperature":0.5,"top_p":0.9,"top_k":4,"min_p":0.1,"max_tokens":5,)"
        R"("repetition_penalty":1.1,"frequency_penalty":1,"presence_penalty":-1,"stop":["x","y"],)"
        R"("logit_bias":{"5":-1.5},"stream":true,"stream_options":{"include_usage":true},)"
        R"("draft":false,"provenance":true,"ignore_eos":true,"prompt_cache_key":"k","user":"u",)"
        R"("metadata":{"a":[1,{"b":null}]},"store":false)";
    return {R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}],"name":"n"},)"
            R"({"role":"assistant","content":null,"tool_calls":[]}],"logprobs":true,)"
            R"("top_logprobs":3,"join":"gBB-_A","tools":[],"response_format":{"type":"text"},)" +
                common + "}",
            R"({"messages":[{"role":"developer","content":"\u00e9\ud83d\ude00"}],"join":true})",
            R"({"prompt":"a","logprobs":2,)" + common + "}",
            R"({"prompt":[1,2,3],"echo":false})",
            R"({"prompt":[[1,2.0,3e0]],"best_of":1,"suffix":""})",
            R"({"content":"a","add_special":true,"model":"m"})"};
}

std::vector<std::string> http_request_seeds() {
    const std::string names = "Host: localhost:1\r\nAuthorization: Bearer k\r\n";
    const auto post = [&](const std::string& path, const std::string& body) {
        return "POST " + path + " HTTP/1.1\r\n" + names +
               "Origin: https://a.example\r\nContent-Type: application/json; charset=utf-8\r\n"
               "Content-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body;
    };
    const std::string get = "GET /v1/models/m%2Fn?x=1 HTTP/1.1\r\n" + names + "\r\n";
    return {post("/v1/chat/completions", kChat),
            post("/v1/completions", kText),
            post("/tokenize", kTokens) + "\r\n" + get,
            get + "HEAD http://localhost:1/health HTTP/1.1\r\nhost: x\r\n\r\n" + get,
            "GET /v1/models/m?x=1 HTTP/1.0\r\nhost: LOCALHOST:1\r\nConnection: keep-alive\r\n"
            "Expect: 100-Continue\r\n\r\n",
            "OPTIONS /x HTTP/1.1\r\nHost: localhost:1\r\nOrigin: https://a.example\r\n"
            "Access-Control-Request-Headers: x-stainless-os,authorization\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost:1\r\nX: a\r\n b\r\n\r\n",
            "POST /tokenize HTTP/1.1\r\n" + names +
                "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                "f;x=y\r\n{\"content\":\"a\"}\r\n0\r\nA: b\r\n\r\n" +
                get};
}

}  // namespace

std::map<std::string, std::vector<std::string>> seeds_of_targets(const fs::path& repository) {
    return {{"safetensors", safetensors_seeds()},
            {"gguf", gguf_seeds()},
            {"torch_bin", torch_bin_seeds()},
            {"torch_pickle", torch_pickle_seeds()},
            {"json_config", json_config_seeds(repository)},
            {"tokenizer", tokenizer_seeds()},
            {"tokenizer_json", tokenizer_json_seeds()},
            {"small_files", small_file_seeds()},
            {"text_stream", text_stream_seeds()},
            {"jinja", jinja_seeds(repository)},
            {"http_request", http_request_seeds()},
            {"json_request", json_request_seeds()}};
}

}  // namespace aerie::fuzz
