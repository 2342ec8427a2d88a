// A program decides by the cause of a failure what to offer, and learns in numbers how far loading
// is, what models there are, and what a model is.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "api/embedded.h"
#include "io/damage.h"
#include "io/input_file.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

class Causes : public testing::Test {
  protected:
    aerie_cause of_opening(const std::string& model) {
        aerie_model_options options = small_options();
        options.model = model.c_str();
        options.draft = "lookup";
        return of_opening(options);
    }
    // The same for a forecast, as far as it looks.
    aerie_cause of_opening(const aerie_model_options& options) {
        aerie_model* model = nullptr;
        const aerie_status status = aerie_model_open(context.handle(), &options, &model);
        EXPECT_NE(status, AERIE_OK);
        aerie_model_free(model);
        const aerie_cause cause = aerie_context_cause(context.handle());
        aerie_forecast forecast = aerie_forecast_init();
        if (aerie_model_forecast(context.handle(), &options, &forecast) != AERIE_OK) {
            EXPECT_EQ(aerie_context_cause(context.handle()), cause)
                << aerie_context_message(context.handle());
        }
        return cause;
    }

    // A copy of the bundled model.
    std::string copied(const std::string& name) const {
        const fs::path copy = folder.path() / name;
        fs::copy(bundled_path(), copy);
        return copy.string();
    }
    std::string with_file(const std::string& name, const std::string& file,
                          const std::string& bytes) const {
        const std::string copy = copied(name);
        folder.write(name + "/" + file, bytes);
        return copy;
    }

    Context context;
    TestFolder folder;
};

TEST_F(Causes, NothingHasFailedYet) {
    EXPECT_EQ(aerie_context_cause(context.handle()), AERIE_CAUSE_NONE);
    const Model model(context, small_options());
    EXPECT_EQ(aerie_model_cause(model.handle()), AERIE_CAUSE_NONE);
    EXPECT_EQ(aerie_session_cause(Session(model).handle()), AERIE_CAUSE_NONE);
}

TEST_F(Causes, FailuresOfOtherThreads) {
    const auto newest = [&](aerie_cause& cause) {
        char* message = nullptr;
        context.check(aerie_context_failure(context.handle(), &message, &cause));
        const std::unique_ptr<char, Free> owner(message);
        return std::string(message);
    };
    aerie_cause cause = AERIE_CAUSE_OTHER;
    EXPECT_EQ(newest(cause), "");
    EXPECT_EQ(cause, AERIE_CAUSE_NONE);
    std::thread([&] { of_opening("no-such-model"); }).join();
    EXPECT_STREQ(aerie_context_message(context.handle()), "");
    EXPECT_NE(newest(cause).find("'no-such-model'"), std::string::npos);
    EXPECT_EQ(cause, AERIE_CAUSE_NOT_FOUND);
    const Model model(context, small_options());
    std::thread([&] { aerie_model_get_info(model.handle(), nullptr); }).join();
    char* message = nullptr;
    model.check(aerie_model_failure(model.handle(), &message, &cause));
    EXPECT_STREQ(message, "aerie_model_info is null");
    EXPECT_EQ(cause, AERIE_CAUSE_ARGUMENT);
    aerie_free(message);
    EXPECT_EQ(aerie_model_failure(model.handle(), nullptr, nullptr), AERIE_OK);
}

TEST_F(Causes, ModelsThatAreNotThere) {
    EXPECT_EQ(of_opening("no-such-model"), AERIE_CAUSE_NOT_FOUND);
    EXPECT_EQ(of_opening("./no-such-folder"), AERIE_CAUSE_NOT_FOUND);
    EXPECT_EQ(of_opening("no-such.gguf"), AERIE_CAUSE_NOT_FOUND);
    EXPECT_EQ(of_opening("no-such-org/no-such-model"), AERIE_CAUSE_NOT_FOUND);
    fs::create_directories(folder.path() / "empty");
    EXPECT_EQ(of_opening((folder.path() / "empty").string()), AERIE_CAUSE_NOT_FOUND);
    const std::string without = copied("without_weights");
    fs::remove(fs::path(without) / "model.safetensors");
    EXPECT_EQ(of_opening(without), AERIE_CAUSE_NOT_FOUND);
}

TEST_F(Causes, FilesThatAreDamaged) {
    EXPECT_EQ(of_opening(with_file("config", "config.json", "{")), AERIE_CAUSE_DAMAGED);
    EXPECT_EQ(of_opening(with_file("tokenizer", "tokenizer.model", "x")), AERIE_CAUSE_DAMAGED);
    const std::string cut = copied("cut");
    fs::resize_file(fs::path(cut) / "model.safetensors", 6000000);
    EXPECT_EQ(of_opening(cut), AERIE_CAUSE_DAMAGED);
    EXPECT_EQ(of_opening(folder.write("cut.gguf", "GGUF").string()), AERIE_CAUSE_DAMAGED);
}

TEST_F(Causes, FilesThatCannotBeRead) {
    const std::string model = copied("unreadable");
    fs::remove(fs::path(model) / "tokenizer.model");
    fs::create_directories(fs::path(model) / "tokenizer.model");
    EXPECT_EQ(of_opening(model), AERIE_CAUSE_FILE);
}

TEST_F(Causes, ModelsThatAerieDoesNotRun) {
    EXPECT_EQ(of_opening(with_file("mamba", "config.json", R"({"model_type": "mamba"})")),
              AERIE_CAUSE_UNSUPPORTED);
    EXPECT_EQ(of_opening(folder.write("a.txt", "no model").string()), AERIE_CAUSE_UNSUPPORTED);
}

TEST_F(Causes, DevicesAndTheirMemory) {
    aerie_model_options options = small_options();
    for (const char* device : {"abacus", "cpu:no-such-set"}) {
        options.device = device;
        EXPECT_EQ(of_opening(options), AERIE_CAUSE_NO_DEVICE) << device;
    }
    options = small_options();
    options.context = 1 << 24;
    const std::string long_one = copied("long");
    std::string config = read_text(fs::path(long_one) / "config.json", 10000);
    const size_t at = config.find("\"max_position_embeddings\":");
    ASSERT_NE(at, std::string::npos);
    config.replace(at, config.find_first_of(",}", at) - at,
                   "\"max_position_embeddings\": 16777216");
    folder.write("long/config.json", config);
    options.model = long_one.c_str();
    options.draft = "none";
    options.sessions = 128;
    EXPECT_EQ(of_opening(options), AERIE_CAUSE_DEVICE_MEMORY);
}

TEST_F(Causes, RequestsThatAreImpossible) {
    aerie_model_options options = small_options();
    options.weights = "q9_9";
    EXPECT_EQ(of_opening(options), AERIE_CAUSE_ARGUMENT);
    options = small_options();
    options.load_progress = [](void*, aerie_stage, uint64_t, uint64_t) { return 1; };
    EXPECT_EQ(of_opening(options), AERIE_CAUSE_CANCELLED);
    const Model model(context, small_options());
    Session session(model);
    aerie_session* other = nullptr;
    EXPECT_EQ(aerie_session_create(model.handle(), &other), AERIE_ERROR);
    EXPECT_EQ(aerie_model_cause(model.handle()), AERIE_CAUSE_SESSIONS);
    aerie_request request = small_request();
    std::string longer;
    for (int i = 0; i < 20; ++i) longer += kPrompt;
    request.text = longer.c_str();
    EXPECT_EQ(aerie_session_begin(session.handle(), &request), AERIE_USAGE);
    EXPECT_EQ(aerie_session_cause(session.handle()), AERIE_CAUSE_TOO_LONG);
    EXPECT_EQ(aerie_session_save(session.handle(), "/no/such/folder/file"), AERIE_ERROR);
    EXPECT_EQ(aerie_session_cause(session.handle()), AERIE_CAUSE_FILE);
    try {
        session.check(AERIE_ERROR);
        FAIL();
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.cause(), AERIE_CAUSE_FILE);
    }
}

TEST_F(Causes, ModelsWithoutAChatTemplate) {
    const std::string plain = copied("plain");
    std::string config = read_text(fs::path(plain) / "tokenizer_config.json", 10000);
    config.replace(config.find("chat_template"), 4, "a");
    folder.write("plain/tokenizer_config.json", config);
    aerie_model_options options = small_options();
    options.model = plain.c_str();
    options.draft = "none";
    const Model model(context, options);
    EXPECT_STREQ(model.info().chat_template, "");
    EXPECT_EQ(model.info().has_chat_template, 0);
    Session session(model);
    const aerie_chat_message message = {"user", "Hello"};
    aerie_request request = aerie_request_init();
    request.messages = &message;
    request.message_count = 1;
    EXPECT_EQ(aerie_session_begin(session.handle(), &request), AERIE_ERROR);
    EXPECT_EQ(aerie_session_cause(session.handle()), AERIE_CAUSE_UNSUPPORTED);
}

TEST_F(Causes, SavedSessions) {
    aerie_model_options options = small_options();
    const Model model(context, options);
    const std::string file = (folder.path() / "saved").string();
    {
        Session session(model);
        answer_to(session, small_request(4));
        session.save(file);
    }
    const auto cause_of_loading = [&](const Model& with, const std::string& path) {
        aerie_session* session = nullptr;
        EXPECT_EQ(aerie_session_load(with.handle(), path.c_str(), &session), AERIE_ERROR);
        return aerie_model_cause(with.handle());
    };
    EXPECT_EQ(cause_of_loading(model, file + "-none"), AERIE_CAUSE_NOT_FOUND);
    const std::string bytes = read_text(file, size_t(1) << 30);
    folder.write("cut", bytes.substr(0, bytes.size() / 2));
    EXPECT_EQ(cause_of_loading(model, (folder.path() / "cut").string()), AERIE_CAUSE_DAMAGED);
    // Another model: one bit of its last weight differs.
    const std::string other_path = copied("other");
    const fs::path weights = fs::path(other_path) / "model.safetensors";
    std::fstream out(weights, std::ios::in | std::ios::out | std::ios::binary);
    out.seekg(-2, std::ios::end);
    const char last = char(out.get() ^ 1);
    out.seekp(-2, std::ios::end);
    out.put(last);
    out.close();
    options.model = other_path.c_str();
    options.draft = "none";
    const Model other(context, options);
    EXPECT_EQ(cause_of_loading(other, file), AERIE_CAUSE_OTHER_MODEL);
}

struct Loading {
    std::vector<aerie_stage> stages;
    uint64_t done = 0, total = 0;
    static int report(void* user, aerie_stage stage, uint64_t done, uint64_t total) {
        Loading& own = *static_cast<Loading*>(user);
        const bool is_new = own.stages.empty() || own.stages.back() != stage;
        if (is_new) own.stages.push_back(stage);
        EXPECT_LE(done, total);
        EXPECT_TRUE(is_new || done >= own.done);
        own.done = done;
        own.total = total;
        return 0;
    }
};

TEST_F(Causes, LoadingIsReportedInNumbers) {
    Loading loading;
    aerie_model_options options = small_options();
    options.load_progress = &Loading::report;
    options.load_progress_user = &loading;
    const Model model(context, options);
    const std::vector<aerie_stage> expected = {AERIE_STAGE_MODEL, AERIE_STAGE_HEAD};
    EXPECT_EQ(loading.stages, expected);
    EXPECT_EQ(loading.done, loading.total) << "the head has been loaded whole";
    EXPECT_GT(loading.total, 1000000u);
    // A program of the first release does not know it.
    loading = {};
    options.size = offsetof(aerie_model_options, load_progress);
    const Model older(context, options);
    EXPECT_TRUE(loading.stages.empty());
}

TEST_F(Causes, ModelsAtHandAreListed) {
    fs::create_directories(folder.path() / "mine");
    fs::copy(bundled_path(), folder.path() / "mine" / "own");
    const std::string root = (folder.path() / "mine").string();
    const auto listed = [&](const char* name, const char* where) -> aerie_listed_model {
        for (const aerie_listed_model& model : context.models(where))
            if (std::string(model.name) == name) return model;
        return aerie_listed_model_init();
    };
    const std::string bundled = models_dir().string();
    const aerie_listed_model tiny = listed("aerie-tiny", bundled.c_str());
    ASSERT_NE(tiny.path, nullptr);
    EXPECT_EQ(fs::path(tiny.path).filename(), "aerie-tiny");
    EXPECT_STREQ(tiny.program, "aerie");
    EXPECT_GT(tiny.weight_bytes, 13000000u);
    EXPECT_NE(std::string(tiny.heads).find("aerie-tiny-eagle\n"), std::string::npos) << tiny.heads;
    EXPECT_EQ(listed("own", nullptr).path, nullptr);
    const aerie_listed_model own = listed("own", root.c_str());
    ASSERT_NE(own.path, nullptr);
    EXPECT_STREQ(own.heads, "");
    EXPECT_EQ(fs::path(own.path).parent_path(), root);
    // Strings of earlier searches stay.
    EXPECT_STREQ(tiny.program, "aerie");
    aerie_listed_model none = aerie_listed_model_init();
    EXPECT_EQ(aerie_context_model(context.handle(), 100000, &none), AERIE_USAGE);
}

TEST_F(Causes, AModelTellsWhatItIs) {
    const Model tiny(context, small_options());
    aerie_model_info info = tiny.info();
    EXPECT_STREQ(info.architecture, "llama");
    EXPECT_STREQ(info.weights, "f16");
    EXPECT_EQ(info.has_chat_template, 1);
    EXPECT_EQ(info.has_system_role, 0) << "its template leaves a system message out";
    EXPECT_GT(info.parameters, 6000000u);
    EXPECT_GE(info.weight_bytes, 2 * info.parameters - 100000);
    EXPECT_EQ(tiny.sampling().temperature, 0);
    const std::string path = (models_dir() / "smollm2.gguf").string();
    aerie_model_options options = small_options();
    options.model = path.c_str();
    options.draft = "none";
    const Model chat(context, options);
    info = chat.info();
    EXPECT_NE(std::string(info.chat_template).find("<|im_start|>"), std::string::npos);
    EXPECT_EQ(info.has_chat_template, 1);
    EXPECT_EQ(info.has_system_role, 1);
    EXPECT_GT(info.parameters, 130000000u);
    EXPECT_LT(info.weight_bytes, info.parameters);
    EXPECT_GT(chat.sampling().temperature, 0);
}

TEST(Init, TheLibraryInitialisesStructsOfAnySize) {
    unsigned char bytes[1024];
    std::memset(bytes, 7, sizeof(bytes));
    auto* request = reinterpret_cast<aerie_request*>(bytes);
    EXPECT_EQ(aerie_request_init_at(request, 64), sizeof(aerie_request));
    EXPECT_EQ(request->size, 64u);
    for (size_t i = sizeof(size_t); i < 64; ++i) EXPECT_EQ(bytes[i], 0) << i;
    EXPECT_EQ(bytes[64], 7);
    EXPECT_EQ(aerie_request_init_at(nullptr, 64), sizeof(aerie_request));
    bytes[0] = 9;
    EXPECT_EQ(aerie_request_init_at(request, 3), sizeof(aerie_request));
    EXPECT_EQ(bytes[0], 9);
    EXPECT_EQ(aerie_version_number(), AERIE_VERSION_NUMBER);
}

}  // namespace
}  // namespace aerie::test
