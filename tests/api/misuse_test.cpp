// Wrong calls give a status and one line, and the next call works.
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "api/embedded.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "io/json.h"

namespace aerie::test {
namespace {

void expect_line(const char* message, const std::string& part) {
    const std::string line = message;
    EXPECT_FALSE(line.empty());
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_NE(line.find(part), std::string::npos) << line;
}

class Misuse : public testing::Test {
  protected:
    // Opening and a forecast fail with this status; the message has `part` in it.
    void refuse(const aerie_model_options& options, aerie_status status, const std::string& part) {
        int nothing = 0;
        auto* model = reinterpret_cast<aerie_model*>(&nothing);
        EXPECT_EQ(aerie_model_open(context.handle(), &options, &model), status) << part;
        EXPECT_EQ(model, nullptr);
        expect_line(aerie_context_message(context.handle()), part);
        aerie_forecast forecast = aerie_forecast_init();
        EXPECT_EQ(aerie_model_forecast(context.handle(), &options, &forecast), status) << part;
    }

    Context context;
};

TEST_F(Misuse, NullHandles) {
    EXPECT_EQ(aerie_context_create(nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_context_set_log(nullptr, nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_model_open(nullptr, nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_model_get_info(nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_create(nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_begin(nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_step(nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_fork(nullptr, 0, nullptr), AERIE_USAGE);
    expect_line(aerie_context_message(nullptr), "null");
    expect_line(aerie_model_message(nullptr), "null");
    expect_line(aerie_session_message(nullptr), "null");
    aerie_session_cancel(nullptr);
    aerie_session_free(nullptr);
    aerie_model_free(nullptr);
    aerie_context_free(nullptr);
    aerie_free(nullptr);
    EXPECT_STREQ(aerie_status_name(aerie_status(99)), "unknown");
    EXPECT_EQ(aerie_context_cause(nullptr), AERIE_CAUSE_ARGUMENT);
    EXPECT_EQ(aerie_model_cause(nullptr), AERIE_CAUSE_ARGUMENT);
    EXPECT_EQ(aerie_session_cause(nullptr), AERIE_CAUSE_ARGUMENT);
    EXPECT_STREQ(aerie_cause_name(aerie_cause(99)), "unknown");
    size_t count = 0;
    aerie_listed_model listed = aerie_listed_model_init();
    EXPECT_EQ(aerie_context_models(nullptr, nullptr, &count), AERIE_USAGE);
    EXPECT_EQ(aerie_context_model(nullptr, 0, &listed), AERIE_USAGE);
    EXPECT_EQ(aerie_model_get_sampling(nullptr, nullptr), AERIE_USAGE);
}

TEST_F(Misuse, NullOutputs) {
    const aerie_model_options options = small_options();
    EXPECT_EQ(aerie_model_open(context.handle(), nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_model_open(context.handle(), &options, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_model_forecast(context.handle(), &options, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_context_devices(context.handle(), nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_context_device(context.handle(), 0, nullptr), AERIE_USAGE);
    aerie_device device = aerie_device_init();
    EXPECT_EQ(aerie_context_device(context.handle(), 99, &device), AERIE_USAGE);
    expect_line(aerie_context_message(context.handle()), "99");
    const Model model(context, options);
    EXPECT_EQ(aerie_session_create(model.handle(), nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_model_tokenize(model.handle(), "x", 0, 0, nullptr, nullptr), AERIE_USAGE);
    Session session(model);
    EXPECT_EQ(aerie_session_begin(session.handle(), nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_answer(session.handle(), nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_ids(session.handle(), nullptr, nullptr, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_fork(session.handle(), 0, nullptr), AERIE_USAGE);
    EXPECT_EQ(aerie_session_save(session.handle(), nullptr), AERIE_USAGE);
}

TEST_F(Misuse, ModelsAndOptionsThatAreNone) {
    aerie_model_options options = small_options();
    options.model = nullptr;
    refuse(options, AERIE_USAGE, "model is null");
    options.model = "no-such-model";
    refuse(options, AERIE_ERROR, "'no-such-model'");
    options.model = "two\nlines";
    refuse(options, AERIE_ERROR, "two");
    options.model = "\xFF\xFE";
    refuse(options, AERIE_USAGE, "UTF-8");
    options = small_options();
    options.weights = "q9_9";
    refuse(options, AERIE_USAGE, "weights: expected one of f32");
    options = small_options();
    options.draft = "magic";
    refuse(options, AERIE_USAGE, "magic");
    options = small_options();
    options.device = "abacus";
    refuse(options, AERIE_ERROR, "abacus");
    options = small_options();
    options.context = 1 << 30;
    refuse(options, AERIE_USAGE, "context");
    options.context = -1;
    refuse(options, AERIE_USAGE, "context");
    options = small_options();
    options.threads = -1;
    refuse(options, AERIE_USAGE, "threads");
    options = small_options();
    options.tree_top_k = 0;
    refuse(options, AERIE_USAGE, "top-k");
    EXPECT_EQ(Model(context, small_options()).info().context, 256);
}

TEST_F(Misuse, SizesOfStructs) {
    aerie_model_options options = small_options();
    for (const size_t size : {size_t(0), sizeof(size_t) - 1, sizeof(size_t), size_t(9),
                              offsetof(aerie_model_options, sessions),
                              offsetof(aerie_model_options, load_progress) - 1, SIZE_MAX}) {
        options.size = size;
        refuse(options, AERIE_USAGE, "aerie_model_options_init()");
    }
    options = small_options();
    struct {
        aerie_model_options known;
        char later[16] = {};
    } newer{options};
    newer.known.size = sizeof(newer);
    Model(context, newer.known);  // the later members are zero: the defaults
    newer.later[15] = 1;
    refuse(newer.known, AERIE_USAGE, "does not know");
}

// A struct of this version's size is filled. One that is shorter than the first release's is
// refused and left as it was.
template <class Struct, class Fill>
void expect_filled_from_whole_size_on(const char* init_name, const Struct& init, const Fill& fill,
                                      const std::function<std::string()>& message,
                                      size_t first_size = sizeof(Struct)) {
    for (size_t size = 0; size < first_size; ++size) {
        Struct out = init;
        out.size = size;
        const Struct before = out;
        EXPECT_EQ(fill(&out), AERIE_USAGE) << init_name << " of " << size;
        EXPECT_EQ(std::memcmp(&out, &before, sizeof(out)), 0) << init_name << " of " << size;
        EXPECT_NE(message().find(init_name), std::string::npos) << message();
    }
    Struct out = init;
    EXPECT_EQ(fill(&out), AERIE_OK) << init_name << ": " << message();
}

TEST_F(Misuse, EveryStructIsAtLeastAsLongAsInTheFirstRelease) {
    const auto of_context = [&] { return aerie_context_message(context.handle()); };
    const aerie_model_options options = small_options();
    expect_filled_from_whole_size_on(
        "aerie_device_init()", aerie_device_init(),
        [&](aerie_device* out) { return aerie_context_device(context.handle(), 0, out); },
        of_context);
    expect_filled_from_whole_size_on(
        "aerie_forecast_init()", aerie_forecast_init(),
        [&](aerie_forecast* out) { return aerie_model_forecast(context.handle(), &options, out); },
        of_context);
    const Model model(context, options);
    expect_filled_from_whole_size_on(
        "aerie_model_info_init()", aerie_model_info_init(),
        [&](aerie_model_info* out) { return aerie_model_get_info(model.handle(), out); },
        [&] { return aerie_model_message(model.handle()); },
        offsetof(aerie_model_info, has_system_role));
    size_t count = 0;
    const std::string folder = models_dir().string();
    context.check(aerie_context_models(context.handle(), folder.c_str(), &count));
    expect_filled_from_whole_size_on(
        "aerie_listed_model_init()", aerie_listed_model_init(),
        [&](aerie_listed_model* out) { return aerie_context_model(context.handle(), 0, out); },
        of_context);
    Session session(model);
    const auto message = [&] { return aerie_session_message(session.handle()); };
    expect_filled_from_whole_size_on(
        "aerie_request_init()", small_request(4),
        [&](aerie_request* in) { return aerie_session_begin(session.handle(), in); }, message,
        offsetof(aerie_request, prompt_progress));
    expect_filled_from_whole_size_on(
        "aerie_sampling_init()", aerie_sampling_init(),
        [&](aerie_sampling* in) {
            aerie_request request = small_request(4);
            request.sampling = in;
            return aerie_session_begin(session.handle(), &request);
        },
        message);
    expect_filled_from_whole_size_on(
        "aerie_step_init()", aerie_step_init(),
        [&](aerie_step* out) { return aerie_session_step(session.handle(), out); }, message);
    answer_to(session, small_request(4));
    expect_filled_from_whole_size_on(
        "aerie_answer_init()", aerie_answer_init(),
        [&](aerie_answer* out) { return aerie_session_answer(session.handle(), out); }, message);
    expect_filled_from_whole_size_on(
        "aerie_token_init()", aerie_token_init(),
        [&](aerie_token* out) { return aerie_session_token(session.handle(), 0, out); }, message);
    expect_filled_from_whole_size_on(
        "aerie_cycle_init()", aerie_cycle_init(),
        [&](aerie_cycle* out) { return aerie_session_cycle(session.handle(), out); }, message);
    expect_filled_from_whole_size_on(
        "aerie_statistics_init()", aerie_statistics_init(),
        [&](aerie_statistics* out) { return aerie_session_statistics(session.handle(), out); },
        message);
}

// The caller was built against a later version with longer structs.
TEST_F(Misuse, NewerStructsAreFilledAsFarAsTheyAreKnown) {
    const Model model(context, small_options());
    struct {
        aerie_model_info known = aerie_model_info_init();
        char later[16];
    } newer;
    std::memset(newer.later, 7, sizeof(newer.later));
    newer.known.size = sizeof(newer);
    model.check(aerie_model_get_info(model.handle(), &newer.known));
    EXPECT_EQ(newer.known.size, sizeof(newer));
    for (const char c : newer.later) EXPECT_EQ(c, 0);
}

TEST_F(Misuse, RequestsThatCannotBeAnswered) {
    const Model model(context, small_options());
    Session session(model);
    const auto refuse_request = [&](const aerie_request& request, const std::string& part) {
        EXPECT_EQ(aerie_session_begin(session.handle(), &request), AERIE_USAGE) << part;
        expect_line(aerie_session_message(session.handle()), part);
    };
    EXPECT_EQ(aerie_session_step(session.handle(), nullptr), AERIE_USAGE);
    expect_line(aerie_session_message(session.handle()), "no answer was begun");
    aerie_request request = aerie_request_init();
    refuse_request(request, "one of text, ids, messages and conversation");
    const std::vector<int32_t> ids(256, 5), unknown = {1, 1 << 20}, negative = {-1};
    request.ids = ids.data();
    refuse_request(request, "empty");
    request.id_count = ids.size();
    refuse_request(request, "context of 256");
    request.text = kPrompt;
    refuse_request(request, "one of");
    request.text = nullptr;
    for (const auto& wrong : {unknown, negative}) {
        request.ids = wrong.data();
        request.id_count = wrong.size();
        refuse_request(request, std::to_string(wrong.back()));
    }
    request = small_request();
    request.max_tokens = -1;
    refuse_request(request, "max_tokens");
    request = small_request();
    request.alternatives = 1 << 30;
    refuse_request(request, "alternatives");
    request = small_request();
    request.stop_count = 1;
    refuse_request(request, "stops");
    for (const char* wrong : {"", "a\xFF"}) {
        request.stops = &wrong;
        refuse_request(request, "stops");
    }
    aerie_sampling sampling = aerie_sampling_init();
    sampling.temperature = std::numeric_limits<float>::quiet_NaN();
    request = small_request();
    request.sampling = &sampling;
    refuse_request(request, "temperature");
    sampling = aerie_sampling_init();
    sampling.size = 3;
    refuse_request(request, "aerie_sampling_init()");
    request = aerie_request_init();
    const aerie_chat_message half = {"user", nullptr};
    request.messages = &half;
    request.message_count = 1;
    refuse_request(request, "content");
    request = aerie_request_init();
    request.conversation = "{\"messages\": 3}";
    EXPECT_EQ(aerie_session_begin(session.handle(), &request), AERIE_ERROR);
    EXPECT_FALSE(answer_to(session, small_request()).empty());
    EXPECT_EQ(aerie_session_rewind(session.handle(), SIZE_MAX), AERIE_USAGE);
    EXPECT_EQ(aerie_session_step(session.handle(), nullptr), AERIE_OK) << "it has ended";
}

TEST_F(Misuse, AFullContextEndsWithLength) {
    const Model model(context, small_options());
    Session session(model);
    aerie_request request = small_request(0);
    request.ignore_eos = 1;
    answer_to(session, request);
    EXPECT_EQ(session.answer().finish, AERIE_FINISH_LENGTH);
    EXPECT_EQ(session.ids().size(), 256u);
}

TEST_F(Misuse, MoreSessionsThanTheModelHasRoomFor) {
    const Model model(context, small_options());
    auto one = std::make_unique<Session>(model);
    aerie_session* other = nullptr;
    EXPECT_EQ(aerie_session_create(model.handle(), &other), AERIE_ERROR);
    EXPECT_EQ(aerie_session_fork(one->handle(), 0, &other), AERIE_ERROR);
    one.reset();
    const Session another(model);
}

TEST_F(Misuse, HandlesMayBeFreedInAnyOrder) {
    auto own = std::make_unique<Context>();
    auto model = std::make_unique<Model>(*own, small_options());
    Session session(*model);
    own.reset();
    model.reset();
    EXPECT_FALSE(answer_to(session, small_request()).empty());
}

struct Stages {
    int calls = 0, end_at = 0;
};

TEST_F(Misuse, LoadingCanBeCancelledAtEveryStage) {
    Stages stages;
    aerie_model_options options = small_options();
    options.progress_user = &stages;
    options.progress = [](void* user, const char* stage) {
        EXPECT_STRNE(stage, "");
        Stages& own = *static_cast<Stages*>(user);
        return int(++own.calls == own.end_at);
    };
    Model(context, options);
    const int all = stages.calls;
    EXPECT_GT(all, 4);
    for (stages.end_at = 1; stages.end_at <= all; ++stages.end_at) {
        stages.calls = 0;
        aerie_model* model = nullptr;
        EXPECT_EQ(aerie_model_open(context.handle(), &options, &model), AERIE_CANCELLED);
        EXPECT_EQ(model, nullptr);
        EXPECT_EQ(stages.calls, stages.end_at);
    }
    stages.calls = 0;
    EXPECT_GT(Model(context, options).info().vocab, 0);
}

TEST_F(Misuse, ExceptionsOfCallbacksDoNotCross) {
    aerie_model_options options = small_options();
    options.progress = [](void*, const char*) -> int { throw 42; };
    aerie_model* model = nullptr;
    EXPECT_EQ(aerie_model_open(context.handle(), &options, &model), AERIE_ERROR);
    expect_line(aerie_context_message(context.handle()), "callback");
}

TEST_F(Misuse, WhatIsSaidGoesToTheLog) {
    std::vector<std::string> lines;
    const auto keep = [](void* user, aerie_log_level, const char* line) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(line);
    };
    context.check(aerie_context_set_log(context.handle(), keep, &lines));
    const Model model(context, small_options());
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("aerie-tiny-eagle"), std::string::npos) << lines[0];
    context.check(aerie_context_set_log(context.handle(), nullptr, nullptr));
    const Model other(context, small_options());
    EXPECT_EQ(lines.size(), 1u);
}

TEST_F(Misuse, AForecastSaysWhatAModelTakes) {
    aerie_model_options options = small_options();
    const aerie_forecast one = context.forecast(options);
    EXPECT_EQ(one.fits, 1);
    EXPECT_EQ(one.context, 256);
    EXPECT_EQ(one.total,
              one.target_weights + one.draft_weights + one.kv_cache + one.scratch + one.program);
    options.sessions = 4;
    EXPECT_GT(context.forecast(options).kv_cache, 3 * one.kv_cache);
    options.draft = "none";
    EXPECT_EQ(context.forecast(options).draft_weights, 0u);
}

// At these sizes the number of rows exceeds int: the forecast counts them, and opening is refused
// before anything is allocated.
TEST_F(Misuse, AbsurdSizesAreCountedAndRefused) {
    const TestFolder folder;
    const std::filesystem::path model = folder.path() / "aerie-tiny";
    std::filesystem::copy(bundled_path(), model);
    Json config = Json::parse(read_text(model / "config.json", 1 << 16), "config.json");
    Json::Object changed = *config.object();
    for (auto& [name, value] : changed)
        if (name == "max_position_embeddings") value = 1 << 24;
    folder.write("aerie-tiny/config.json", Json(changed).dump());
    const std::string path = model.string();
    aerie_model_options options = small_options();
    options.model = path.c_str();
    options.context = 1 << 24;
    for (const char* draft : {"none", "lookup", "eagle2"}) {
        const std::string head = bundled_path() + "-eagle";
        options.draft = draft;
        options.head = draft == std::string("eagle2") ? head.c_str() : nullptr;
        uint64_t before = 0;
        for (const int32_t sessions : {1, 2, 128, 256, 257, 4096}) {
            options.sessions = sessions;
            const aerie_forecast forecast = context.forecast(options);
            EXPECT_GT(forecast.kv_cache, uint64_t(sessions) << 24) << draft << " " << sessions;
            EXPECT_GT(forecast.kv_cache, before) << draft << " " << sessions;
            EXPECT_GE(forecast.total, forecast.kv_cache);
            before = forecast.kv_cache;
            if (sessions < 128) continue;
            EXPECT_EQ(forecast.fits, 0) << draft << " " << sessions;
            EXPECT_LT(forecast.largest_context, 1 << 24);
            aerie_model* opened = nullptr;
            EXPECT_EQ(aerie_model_open(context.handle(), &options, &opened), AERIE_ERROR);
            EXPECT_EQ(opened, nullptr);
        }
    }
}

TEST_F(Misuse, DevicesAreListed) {
    bool has_cpu = false;
    int best = 0;
    for (const aerie_device& device : context.devices()) {
        has_cpu = has_cpu || std::string(device.name) == "cpu";
        best += device.is_best;
        EXPECT_GT(device.memory_bytes, 0u);
    }
    EXPECT_TRUE(has_cpu);
    EXPECT_EQ(best, 1);
}

}  // namespace
}  // namespace aerie::test
