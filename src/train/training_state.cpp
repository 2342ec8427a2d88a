#include "train/training_state.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/replaced_file.h"
#include "io/input_file.h"
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

    // A whole number of this range.
    int whole(const char* key, int low, int high) const {
        const int64_t value = large(key);
        if (value < low || value > high) fail(key);
        return int(value);
    }
    int64_t large(const char* key) const {
        int64_t value = 0;
        if (!get(key).integer(value)) fail(key);
        return value;
    }
    double real(const char* key, double low, double high) const {
        const double value = get(key).number();
        if (!get(key).is_number() || !(value >= low && value <= high)) fail(key);
        return value;
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

// The first line of a regular file. Throws Error.
std::string first_line(const fs::path& file) {
    const InputFile bytes(file);
    std::string line(std::min(kMaxLine, bytes.size_bytes()), '\0');
    bytes.read(0, std::as_writable_bytes(std::span(line)));
    const size_t end = line.find('\n');
    if (end == std::string::npos)
        throw Error(file.string() + " is damaged: begin the training anew");
    return line.substr(0, end);
}

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
    if (!fs::exists(fs::symlink_status(file, none))) return {};
    const std::string line = first_line(file);
    const Json json = Json::parse(line, file.string());
    const Json* schema = json.find("schema");
    if (!schema || !schema->string() || *schema->string() != kSchema)
        throw Error(file.string() + " is not the state of a training of this version of aerie");
    const Members members(json, file.string());
    TrainingState state;
    HeadShape& shape = state.setup.shape;
    constexpr int kMaxSize = 1 << 20, kMaxVocab = 1 << 24, kMaxDepths = 16;
    shape = {.hidden = members.whole("hidden", 1, kMaxSize),
             .intermediate = members.whole("intermediate", 1, kMaxSize),
             .heads = members.whole("heads", 1, kMaxSize),
             .kv_heads = members.whole("kv_heads", 1, kMaxSize),
             .head_dim = members.whole("head_dim", 1, kMaxSize),
             .taps = members.whole("tap_count", 1, 8),
             .vocab = members.whole("vocab", 2, kMaxVocab),
             .draft_vocab = members.whole("draft_vocab", 0, kMaxVocab),
             .epsilon = members.real("epsilon", 0, 1),
             .rope_base = members.real("rope_base", 1, 1e12)};
    TrainingPlan& plan = state.setup.plan;
    plan = {.batch_rows = members.whole("batch_rows", 1, kMaxSize),
            .rate = members.real("rate", 0, 1e38),
            .warm_up = members.real("warm_up", 0, 0.99),
            .final_rate = members.real("final_rate", 0, 1),
            .clip_norm = members.real("clip_norm", 0, 1e9),
            .noise = members.real("noise", 0, 1e3),
            .test = {members.whole("depths", 1, kMaxDepths), members.real("depth_weight", 0, 1)},
            .seed = uint64_t(members.large("seed"))};
    state.setup.taps = members.list("taps");
    state.setup.draft_ids = members.list("draft_ids");
    state.steps = members.whole("steps", 0, 1 << 30);
    state.tokens = members.large("tokens");
    state.seconds = members.real("seconds", 0, 1e12);
    state.best_tau = members.real("best_tau", 0, 1e6);
    state.best_step = members.whole("best_step", -1, state.steps);
    state.since_best = members.whole("since_best", 0, 1 << 30);
    const std::vector<int>&ids = state.setup.draft_ids, &taps = state.setup.taps;
    const bool fits =
        int(ids.size()) == shape.draft_vocab && int(taps.size()) == shape.taps &&
        std::all_of(ids.begin(), ids.end(), [&](int id) { return id < shape.vocab; }) &&
        std::set<int>(ids.begin(), ids.end()).size() == ids.size() &&
        std::is_sorted(taps.begin(), taps.end()) && shape.heads % shape.kv_heads == 0 &&
        shape.head_dim % 2 == 0 && int64_t(shape.heads) * shape.head_dim <= kMaxSize &&
        state.tokens >= 0;
    if (!fits) throw Error(file.string() + " is damaged: begin the training anew");
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
