// Generated hostile models: every integer of an untrusted file at its extremes, and shapes that a
// target would not expect of its head. Each is refused by an Error of one line, or gives the same
// text drafted and plain. The tests are meant to run under AddressSanitizer, too.
#include <gtest/gtest.h>

#include <climits>
#include <set>

#include "backend/registry.h"
#include "engine/generation.h"
#include "engine/learned_costs.h"
#include "engine/model.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "io/write_files.h"
#include "model/toy_model.h"
#include "text/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFewestCases = 400;
constexpr int kVocab = 288;  // whole groups, and a few ids more than the tokenizer has

ModelConfig small_shape() {
    ModelConfig config;
    config.hidden = 32;
    config.intermediate = 64;
    config.layers = 1;
    config.vocab = kVocab;
    config.context = 128;
    config.attention = {2, 1, 16};
    return config;
}

// A JSON object with one member set or added.
std::string with_member(const std::string& object, const std::string& key, const Json& value) {
    Json result;
    const Json old = Json::parse(object, "good file");
    for (const auto& [name, item] : *old.object())
        if (name != key) result.set(name, item);
    result.set(key, value);
    return result.dump();
}

class HostileFiles : public testing::Test {
  protected:
    void SetUp() override {
        write_toy_model(target(), small_shape(), DType::F16, 0.3f, 1);
        write(target() / "tokenizer.model", ModelWriter{}.file());
        write(target() / "tokenizer_config.json", "{}");
        write(target() / "generation_config.json", "{}");
    }

    fs::path target() const { return folder_.path() / "target"; }
    fs::path head() const { return folder_.path() / "target-eagle"; }

    // Loads the model and writes a few tokens; prints what goes wrong as a user would see it.
    void attempt(const std::string& name, LoadOptions options = {}) {
        std::printf("%zu %s: ", ++cases_, name.c_str());
        std::fflush(stdout);  // if the program crashes, the last line names the case
        try {
            options.device = "cpu";
            options.threads = 2;
            options.model = target();
            options.head = head();
            options.context = 64;
            options.draft.method = "eagle2";
            options.draft.tree = TreeShape{12, 3, 4};
            const std::vector<int> drafted = ids(options);
            options.draft = {};
            EXPECT_EQ(drafted, ids(options)) << name;
            std::printf("%zu tokens\n", drafted.size());
            ++runs_;
        } catch (const Error& error) {
            const std::string message = error.what();
            EXPECT_TRUE(!message.empty() && message.size() < 500 &&
                        message.find('\n') == std::string::npos)
                << name << ": " << message;
            std::printf("%s\n", message.c_str());
        }
    }

    // The same with one file replaced and restored afterwards.
    void attempt_with(const std::string& name, const fs::path& file, const std::string& text) {
        const std::string good = read_text(file, 64 << 20);
        write(file, text);
        attempt(name);
        write(file, good);
    }

    void attempt_members(const fs::path& file,
                         const std::vector<std::pair<const char*, int>>& all) {
        for (const auto& [key, value] : all)
            for (const Json& hostile : hostile_values(value))
                attempt_with(
                    file.parent_path().filename().string() + " " + key + " = " + hostile.dump(),
                    file, with_member(read_text(file, 1 << 20), key, hostile));
    }

    // Sets one integer of tokenizer.model's trainer: types, sizes, switches, special ids.
    void attempt_tokenizers(uint64_t value) {
        for (const int field : {3, 4, 24, 35, 40, 41, 42, 43}) {
            ModelWriter model;
            if (field == 3)
                model.model_type = int(value);
            else
                model.trainer = varint_field(field, value);
            attempt_with("tokenizer.model trainer field " + std::to_string(field) + " = " +
                             std::to_string(int64_t(value)),
                         target() / "tokenizer.model", model.file());
        }
    }

    // Changes one number of a tensor's entry in the header of model.safetensors.
    void attempt_headers(const char* tensor, const char* list, size_t place) {
        const fs::path file = target() / "model.safetensors";
        const std::string good = read_text(file, 1 << 20);
        const size_t end = 8 + (size_t(uint8_t(good[0])) | size_t(uint8_t(good[1])) << 8);
        const std::string header = good.substr(8, end - 8);
        const Json all = Json::parse(header, "header");
        const Json::Array numbers = *all.find(tensor)->find(list)->array();
        for (const Json& hostile : hostile_values(int64_t(numbers[place].number()))) {
            Json::Array changed = numbers;
            changed[place] = hostile;
            const Json entry =
                Json::parse(with_member(all.find(tensor)->dump(), list, changed), "entry");
            attempt_with(std::string(tensor) + " " + list + " " + Json(changed).dump(), file,
                         safetensors_file(with_member(header, tensor, entry), good.substr(end)));
        }
    }

    static std::vector<Json> hostile_values(int64_t good) {
        std::vector<Json> values;
        std::set<std::string> seen;
        for (const Json& value : std::initializer_list<Json>{
                 int64_t(INT64_MIN), int64_t(INT_MIN), -1, 0, good / 2, good + 1, 2 * good,
                 int64_t(INT_MAX), int64_t(INT64_MAX), uint64_t(-1), 1e300, double(good) + 0.5})
            if (seen.insert(value.dump()).second) values.push_back(value);
        return values;
    }

    static void write(const fs::path& file, const std::string& text) { write_text(file, text); }

    size_t cases_ = 0, runs_ = 0;

  private:
    static std::vector<int> ids(const LoadOptions& options) {
        ModelFiles files = ModelFiles::open(options);
        const Tokenizer tokenizer = load_tokenizer(files);
        Model model(std::move(files), options);
        Model::Drafting drafting = model.start_session(options.draft);
        LearnedCosts(model, drafting);
        Request request;
        request.prompt = tokenizer.encode_from_start("ab \n");
        request.max_tokens = 6;
        request.eos_ids = eos_ids(model.files(), tokenizer);
        const GenerationResult text = generate(*drafting.session, tokenizer, request);
        for (const int id : text.ids) tokenizer.bytes(id);
        return text.ids;
    }

    const TestFolder folder_;
};

TEST_F(HostileFiles, TheGoodOneRuns) {
    attempt("good");
    EXPECT_EQ(runs_, 1u);
}

TEST_F(HostileFiles, EveryIntegerAtItsExtremes) {
    const std::vector<std::pair<const char*, int>> shape = {
        {"hidden_size", 32},        {"intermediate_size", 64},  {"num_hidden_layers", 1},
        {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"head_dim", 16},
        {"vocab_size", kVocab},     {"rope_theta", 10000},      {"rms_norm_eps", 1}};
    attempt_members(target() / "config.json", shape);
    attempt_members(target() / "config.json",
                    {{"max_position_embeddings", 128}, {"eos_token_id", 2}, {"bos_token_id", 1}});
    attempt_members(head() / "config.json", shape);
    attempt_members(target() / "generation_config.json", {{"eos_token_id", 2}, {"top_k", 10}});

    for (const Json& hostile : hostile_values(2))
        if (int64_t value = 0; hostile.integer(value)) attempt_tokenizers(uint64_t(value));
    for (int kind = -1; kind < 9; ++kind)
        attempt_with("tokenizer.model piece of type " + std::to_string(kind),
                     target() / "tokenizer.model", ModelWriter{.pieces = {{"a", 0, kind}}}.file());
    for (const char* tensor : {"model.embed_tokens.weight", "lm_head.weight"})
        for (const char* list : {"shape", "data_offsets"})
            for (const size_t place : {0, 1}) attempt_headers(tensor, list, place);
    EXPECT_GE(cases_, kFewestCases);
}

TEST_F(HostileFiles, TokenizersWithoutBosAndThoseToldToAddIt) {
    constexpr int kBosId = 41, kBosPiece = 46;
    for (const std::string& trainer :
         {std::string(), varint_field(kBosId, uint64_t(-1)), bytes_field(kBosPiece, "absent"),
          bytes_field(kBosPiece, "<unk>"), bytes_field(kBosPiece, "</s>"),
          varint_field(kBosId, uint64_t(-1)) + bytes_field(kBosPiece, "absent")})
        for (const char* config : {"{}", R"({"add_bos_token":true})", R"({"add_bos_token":false})",
                                   R"({"add_bos_token":true,"bos_token":"<s>"})",
                                   R"({"add_bos_token":true,"bos_token":"<unk>"})",
                                   R"({"add_bos_token":true,"bos_token":null})"}) {
            write(target() / "tokenizer_config.json", config);
            attempt_with("BOS " + std::to_string(trainer.size()) + " " + config,
                         target() / "tokenizer.model", ModelWriter{.trainer = trainer}.file());
        }
    EXPECT_GE(runs_, 18u);
}

// The files agree with each other and only the shapes are odd, so no check of shapes can refuse
// them.
TEST_F(HostileFiles, HeadsOfOtherShapesThanTheirTarget) {
    std::vector<ModelConfig> shapes;
    const ModelConfig good = small_shape();
    for (const int intermediate : {1, 16, 32, 63, 128, 256, 512, 8192, 65536})
        (shapes.emplace_back(good)).intermediate = intermediate;
    for (const AttentionShape attention : {AttentionShape{1, 1, 16},
                                           {4, 4, 16},
                                           {8, 1, 16},
                                           {64, 64, 16},
                                           {128, 1, 16},
                                           {129, 1, 16},
                                           {256, 1, 16},
                                           {256, 256, 16},
                                           {1024, 1, 16},
                                           {1, 1, 256},
                                           {1, 1, 272},
                                           {1, 1, 512},
                                           {1, 1, 1024},
                                           {8, 2, 128}})
        (shapes.emplace_back(good)).attention = attention;
    for (const ModelConfig& shape : shapes)
        for (const auto type : {std::optional<DType>(), std::optional(DType::F32)}) {
            write(head() / "config.json", config_json(shape));
            write_random_safetensors(head() / "model.safetensors", head_tensors(shape), DType::F16,
                                     0.3f, 2);
            LoadOptions options;
            options.draft_weights = type;
            attempt("head " + config_json(shape), options);
        }
    EXPECT_GE(runs_, shapes.size()) << "most of them are fine";
}

TEST_F(HostileFiles, TargetsOfOddShapes) {
    std::vector<ModelConfig> shapes;
    const ModelConfig good = small_shape();
    for (const int intermediate : {1, 31, 4096})
        (shapes.emplace_back(good)).intermediate = intermediate;
    for (const int hidden : {16, 48, 64}) (shapes.emplace_back(good)).hidden = hidden;
    for (const AttentionShape attention : {AttentionShape{128, 1, 16},
                                           {129, 1, 16},
                                           {256, 1, 16},
                                           {1024, 1, 16},
                                           {1, 1, 272},
                                           {1, 1, 1024}})
        (shapes.emplace_back(good)).attention = attention;
    for (const ModelConfig& shape : shapes)
        for (const auto type : {std::optional<DType>(), std::optional(DType::Q8_0)}) {
            write_toy_model(target(), shape, DType::F16, 0.3f, 3);
            LoadOptions options;
            options.weights = type;
            attempt("target " + config_json(shape), options);
        }
    EXPECT_GE(runs_, 8u);
}

// Tensors of the file that the model does not use take no memory, and the plan leaves them out.
TEST_F(HostileFiles, APlanLeavesOutWhatIsNotLoaded) {
    LoadOptions options;
    options.model = target();
    options.context = 64;
    const auto backend = open_device("cpu");
    const size_t plain = ModelFiles::open(options).plan(options, *backend).total();
    const fs::path file = target() / "model.safetensors";
    const std::string good = read_text(file, 1 << 20);
    const size_t begin = 8 + (size_t(uint8_t(good[0])) | size_t(uint8_t(good[1])) << 8);
    const uint64_t data = good.size() - begin, unused = uint64_t(60) << 30;
    const std::string header =
        with_member(good.substr(8, begin - 8), "unused",
                    Json::Object{{"dtype", "F16"},
                                 {"shape", Json::Array{int64_t(unused / 2048), 1024}},
                                 {"data_offsets", Json::Array{data, data + unused}}});
    write(file, safetensors_file(header, good.substr(begin)));
    fs::resize_file(file, 8 + header.size() + data + unused);  // a sparse file
    EXPECT_EQ(ModelFiles::open(options).plan(options, *backend).total(), plain);
    attempt("unused tensor");
    EXPECT_EQ(runs_, 1u);
}

// Nothing is read from the files once a model is loaded.
TEST_F(HostileFiles, AFileCutShortWhileItsModelRuns) {
    LoadOptions options;
    options.device = "cpu";
    options.model = target();
    options.context = 64;
    Model model(ModelFiles::open(options), options);
    const Model::Drafting plain = model.start_session(make_none());
    const Tokenizer tokenizer = load_tokenizer(model.files());
    Request request;
    request.prompt = tokenizer.encode_from_start("ab");
    request.max_tokens = 8;
    const auto ids = [&] { return generate(*plain.session, tokenizer, request).ids; };
    const std::vector<int> before = ids();
    fs::resize_file(target() / "model.safetensors", 0);
    EXPECT_EQ(ids(), before);
    // A file that is too short when a model loads is an error.
    EXPECT_NE(error_of([&] { const Model again(ModelFiles::open(options), options); }), "");
}

}  // namespace
}  // namespace aerie::test
