#include "train/training_state.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/replaced_file.h"
#include "io/json.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSchema = "aerie-training-1";
constexpr size_t kMaxLine = size_t(16) << 20;

Json::Array list_of(const std::vector<int>& values) {
    return {values.begin(), values.end()};
}

std::string line_of(const TrainingState& state) {
    const HeadShape& shape = state.setup.shape;
    const TrainingPlan& plan = state.setup.plan;
    Json json;
    json.set("schema", kSchema);
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, int>>{{"hidden", shape.hidden},
                                                            {"intermediate", shape.intermediate},
                                                            {"heads", shape.heads},
                                                            {"kv_heads", shape.kv_heads},
                                                            {"head_dim", shape.head_dim},
                                                            {"tap_count", shape.taps},
                                                            {"vocab", shape.vocab},
                                                            {"draft_vocab", shape.draft_vocab},
                                                            {"batch_rows", plan.batch_rows},
                                                            {"depths", plan.test.depths},
                                                            {"steps", state.steps},
                                                            {"best_step", state.best_step},
                                                            {"since_best", state.since_best}})
        json.set(key, value);
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, double>>{{"epsilon", shape.epsilon},
                                                               {"rope_base", shape.rope_base},
                                                               {"rate", plan.rate},
                                                               {"warm_up", plan.warm_up},
                                                               {"final_rate", plan.final_rate},
                                                               {"clip_norm", plan.clip_norm},
                                                               {"noise", plan.noise},
                                                               {"depth_weight", plan.test.weight},
                                                               {"seconds", state.seconds},
                                                               {"best_tau", state.best_tau}})
        json.set(key, value);
    json.set("seed", plan.seed);
    json.set("tokens", state.tokens);
    json.set("taps", list_of(state.setup.taps));
    json.set("draft_ids", list_of(state.setup.draft_ids));
    return json.dump() + "\n";
}

// Reads members of the line, each of which must be there.
class Members {
  public:
    Members(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

    int whole(const char* key) const {
        const int64_t value = large(key);
        if (value < INT32_MIN || value > INT32_MAX) fail(key);
        return int(value);
    }
    int64_t large(const char* key) const {
        int64_t value = 0;
        if (!get(key).integer(value)) fail(key);
        return value;
    }
    double real(const char* key) const {
        if (!get(key).is_number()) fail(key);
        return get(key).number();
    }
    std::vector<int> list(const char* key) const {
        const Json::Array* values = get(key).array();
        if (!values) fail(key);
        std::vector<int> list;
        for (const Json& value : *values) {
            int64_t number = -1;
            if (!value.integer(number) || number < 0 || number > INT32_MAX) fail(key);
            list.push_back(int(number));
        }
        return list;
    }

  private:
    const Json& get(const char* key) const {
        const Json* member = json_.find(key);
        if (!member) fail(key);
        return *member;
    }
    [[noreturn]] void fail(const char* key) const {
        throw Error(file_ + ": \"" + key + "\" is missing or damaged: begin the training anew");
    }

    const Json& json_;
    std::string file_;
};

std::vector<float> floats_of(TrainingDevice& device, const Matrix& matrix) {
    std::vector<double> values(matrix.size());
    device.read(matrix, values);
    return {values.begin(), values.end()};
}

}  // namespace

void write_state(const fs::path& file, const TrainingState& state, TrainingDevice& device,
                 const TrainedHead& head) {
    ReplacedFile(file).commit([&](const ReplacedFile::Write& write) {
        write(line_of(state));
        for (const Parameter& parameter : head.parameters())
            for (const Matrix& matrix : {parameter.value, parameter.mean, parameter.square}) {
                const std::vector<float> values = floats_of(device, matrix);
                write(
                    {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
            }
    });
}

std::optional<TrainingState> read_state(const fs::path& file) {
    std::error_code none;
    if (!fs::exists(file, none)) return {};
    std::ifstream in(file, std::ios::binary);
    std::string line;
    if (!std::getline(in, line) || line.size() > kMaxLine)
        throw Error(file.string() + " is damaged: begin the training anew");
    const Json json = Json::parse(line, file.string());
    const Json* schema = json.find("schema");
    if (!schema || !schema->string() || *schema->string() != kSchema)
        throw Error(file.string() + " is not the state of a training of this version of aerie");
    const Members members(json, file.string());
    TrainingState state;
    HeadShape& shape = state.setup.shape;
    shape = {.hidden = members.whole("hidden"),
             .intermediate = members.whole("intermediate"),
             .heads = members.whole("heads"),
             .kv_heads = members.whole("kv_heads"),
             .head_dim = members.whole("head_dim"),
             .taps = members.whole("tap_count"),
             .vocab = members.whole("vocab"),
             .draft_vocab = members.whole("draft_vocab"),
             .epsilon = members.real("epsilon"),
             .rope_base = members.real("rope_base")};
    TrainingPlan& plan = state.setup.plan;
    plan = {.batch_rows = members.whole("batch_rows"),
            .rate = members.real("rate"),
            .warm_up = members.real("warm_up"),
            .final_rate = members.real("final_rate"),
            .clip_norm = members.real("clip_norm"),
            .noise = members.real("noise"),
            .test = {members.whole("depths"), members.real("depth_weight")},
            .seed = uint64_t(members.large("seed"))};
    state.setup.taps = members.list("taps");
    state.setup.draft_ids = members.list("draft_ids");
    state.steps = members.whole("steps");
    state.tokens = members.large("tokens");
    state.seconds = members.real("seconds");
    state.best_tau = members.real("best_tau");
    state.best_step = members.whole("best_step");
    state.since_best = members.whole("since_best");
    if (int(state.setup.draft_ids.size()) != shape.draft_vocab ||
        std::any_of(state.setup.draft_ids.begin(), state.setup.draft_ids.end(),
                    [&](int id) { return id >= shape.vocab; }))
        throw Error(file.string() + " is damaged: begin the training anew");
    return state;
}

void read_parameters(const fs::path& file, const TrainingState& state, TrainingDevice& device,
                     TrainedHead& head) {
    std::ifstream in(file, std::ios::binary);
    std::string line;
    std::getline(in, line);
    for (const Parameter& parameter : head.parameters())
        for (const Matrix& matrix : {parameter.value, parameter.mean, parameter.square}) {
            std::vector<float> values(matrix.size());
            in.read(reinterpret_cast<char*>(values.data()),
                    std::streamsize(values.size() * sizeof(float)));
            if (!in) throw Error(file.string() + " is too short: begin the training anew");
            device.write(matrix, std::span<const float>(values));
        }
    head.go_on_after(state.steps);
}

}  // namespace aerie::train
