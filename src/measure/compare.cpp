// Compares prompt by prompt, pass by pass, device by device, so memory does not grow with the text.
#include "measure/compare.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace aerie {

namespace {

constexpr size_t kKeptBytes = size_t(256) << 20;  // most bytes of reference values

std::optional<int> first_difference(const std::vector<int>& a, const std::vector<int>& b) {
    const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at == a.end() && other == b.end()) return std::nullopt;
    return int(at - a.begin());
}

// A device that is listed twice gets a number.
std::string unique_name(const std::string& name, const std::vector<ComparedDevice>& devices) {
    const auto taken = [&](const std::string& wanted) {
        return std::any_of(devices.begin(), devices.end(),
                           [&](const ComparedDevice& device) { return device.name == wanted; });
    };
    if (!taken(name)) return name;
    int number = 2;
    while (taken(name + " #" + std::to_string(number))) ++number;
    return name + " #" + std::to_string(number);
}

class Comparer {
  public:
    Comparer(std::span<const std::unique_ptr<ComparedModel>> models, const Tokenizer& tokenizer,
             const CompareTask& task);

    Comparison run();

  private:
    bool stopped() const { return task_.cancelled && task_.cancelled(); }
    void say(const std::string& what) const {
        if (task_.on_progress) task_.on_progress(what);
    }
    ComparedText decode(ComparedModel& model, const std::vector<int>& prompt);
    void draft(ComparedModel& model, const Request& request, ComparedText& text);
    void find_forks(size_t prompt);
    void compare_prompt(size_t prompt);
    void compare_pass(size_t prompt, std::span<const int> text, int first, int count);
    void compare_ops(size_t device, std::span<const int> text, int first, int count);
    void compare_logits(size_t device, size_t prompt, int first, int count);
    ComparedOp* counterpart(size_t device, size_t op);

    std::span<const std::unique_ptr<ComparedModel>> models_;
    const Tokenizer& tokenizer_;
    const CompareTask& task_;
    int pass_rows_;
    Comparison result_;
    std::vector<OpValues> kept_;                     // the reference's newest pass, by op
    std::vector<std::vector<float>> kept_logits_;    // the same, by row
    std::vector<std::vector<int>> reference_of_op_;  // [device][op]: reference op; -1: none
    std::vector<float> wanted_, got_;
    OpValues values_;
};

Comparer::Comparer(std::span<const std::unique_ptr<ComparedModel>> models,
                   const Tokenizer& tokenizer, const CompareTask& task)
    : models_(models), tokenizer_(tokenizer), task_(task) {
    ComparedModel& reference = *models.front();
    const std::vector<OpPlace>& ops = reference.ops();
    pass_rows_ = int(std::clamp<size_t>(kKeptBytes / reference.row_bytes(), 1, kObservedRows));
    kept_.resize(ops.size());
    kept_logits_.resize(size_t(pass_rows_));
    result_.weights = reference.model().weights();
    result_.kv = reference.model().options().kv;
    result_.prompts = task.prompts;
    result_.drafts = reference.drafts();
    for (const auto& model : models) {
        ComparedDevice device;
        device.name = unique_name(model->capabilities().name, result_.devices);
        device.description = model->capabilities().description;
        std::vector<int>& references = reference_of_op_.emplace_back();
        for (const OpPlace& op : model->ops()) {
            const auto found = std::find(ops.begin(), ops.end(), op);
            references.push_back(found == ops.end() ? -1 : int(found - ops.begin()));
            if (model != models.front() && found != ops.end()) device.ops.push_back({op, {}, {}});
        }
        result_.devices.push_back(std::move(device));
    }
}

Comparison Comparer::run() {
    for (size_t prompt = 0; prompt < task_.prompts.size() && !stopped(); ++prompt)
        compare_prompt(prompt);
    result_.cancelled = stopped();
    return std::move(result_);
}

// Decodes the device's greedy texts. If a model computes NaN and cannot choose, this is a finding,
// not an error.
ComparedText Comparer::decode(ComparedModel& model, const std::vector<int>& prompt) {
    Request request;
    request.prompt = prompt;
    request.max_tokens = task_.max_tokens;
    request.eos_ids = task_.eos_ids;
    request.cancelled = task_.cancelled;
    ComparedText text;
    try {
        text.ids = model.plain(tokenizer_, request).ids;
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        text.failure = error.what();
        return text;
    }
    if (model.drafts()) draft(model, request, text);
    return text;
}

void Comparer::draft(ComparedModel& model, const Request& request, ComparedText& text) {
    try {
        const GenerationResult drafted = model.drafted(tokenizer_, request);
        text.drafting = drafted.stats;
        text.drafted_fork = first_difference(text.ids, drafted.ids);
    } catch (const Error& error) {
        text.drafted_failure = error.what();
    }
}

void Comparer::compare_prompt(size_t prompt) {
    const std::string number =
        "prompt " + std::to_string(prompt + 1) + " of " + std::to_string(task_.prompts.size());
    for (size_t device = 0; device < models_.size(); ++device) {
        say(number + ": decoding on " + result_.devices[device].name);
        result_.devices[device].texts.push_back(decode(*models_[device], task_.prompts[prompt]));
        if (stopped()) return;
    }
    find_forks(prompt);
    std::vector<int> text = task_.prompts[prompt];
    const std::vector<int>& ids = result_.devices.front().texts[prompt].ids;
    if (!ids.empty()) text.insert(text.end(), ids.begin(), ids.end() - 1);
    for (int first = 0; first < int(text.size()) && !stopped(); first += pass_rows_) {
        say(number + ": " + std::to_string(first) + " of " + std::to_string(text.size()) +
            " positions compared");
        compare_pass(prompt, text, first, std::min(pass_rows_, int(text.size()) - first));
    }
}

void Comparer::find_forks(size_t prompt) {
    const std::vector<int>& ids = result_.devices.front().texts[prompt].ids;
    const auto token = [](const std::vector<int>& of, int at) {
        return at < int(of.size()) ? of[size_t(at)] : -1;
    };
    for (size_t device = 1; device < models_.size(); ++device) {
        ComparedText& text = result_.devices[device].texts[prompt];
        if (const auto at = first_difference(ids, text.ids))
            text.fork = Fork{*at, token(ids, *at), token(text.ids, *at),
                             std::numeric_limits<double>::infinity()};
    }
}

void Comparer::compare_pass(size_t prompt, std::span<const int> text, int first, int count) {
    ComparedModel& reference = *models_.front();
    reference.run(text, first, count, ComparedModel::Inputs::own,
                  [&](size_t op, Tensor out) { kept_[op].read(reference.model().backend(), out); });
    for (int row = 0; row < count; ++row) reference.read_logits(row, kept_logits_[size_t(row)]);
    for (size_t device = 0; device < models_.size(); ++device) {
        if (device > 0) compare_ops(device, text, first, count);
        compare_logits(device, prompt, first, count);
    }
}

// The counterpart of an op has the same place. Devices may differ in the conversions that they run.
ComparedOp* Comparer::counterpart(size_t device, size_t op) {
    const int reference = reference_of_op_[device][op];
    if (reference < 0) return nullptr;
    std::vector<ComparedOp>& ops = result_.devices[device].ops;
    const OpPlace& place = models_[device]->ops()[op];
    return &*std::find_if(ops.begin(), ops.end(),
                          [&](const ComparedOp& entry) { return entry.place == place; });
}

void Comparer::compare_ops(size_t device, std::span<const int> text, int first, int count) {
    ComparedModel& model = *models_[device];
    Backend& be = model.model().backend();
    const auto add = [&](size_t op, Tensor out, Difference ComparedOp::*sums) {
        ComparedOp* entry = counterpart(device, op);
        if (!entry) return;
        const OpValues& kept = kept_[size_t(reference_of_op_[device][op])];
        kept.floats(wanted_);
        values_.read(be, out);
        values_.floats(got_);
        const size_t cols = size_t(out.cols);
        for (size_t row = 0; row < size_t(out.rows); ++row)
            (entry->*sums)
                .add_row(std::span(wanted_).subspan(row * cols, cols),
                         std::span(got_).subspan(row * cols, cols));
        if (sums == &ComparedOp::alone) kept.write(be, out);
    };
    model.run(text, first, count, ComparedModel::Inputs::given,
              [&](size_t op, Tensor out) { add(op, out, &ComparedOp::alone); });
    model.run(text, first, count, ComparedModel::Inputs::own,
              [&](size_t op, Tensor out) { add(op, out, &ComparedOp::carried); });
}

void Comparer::compare_logits(size_t device, size_t prompt, int first, int count) {
    ComparedText& text = result_.devices[device].texts[prompt];
    const int prompt_size = int(task_.prompts[prompt].size());
    for (int row = 0; row < count; ++row) {
        const std::vector<float>& wanted = kept_logits_[size_t(row)];
        models_[device]->read_logits(row, got_);
        ComparedPosition position;
        position.kl = device == 0 ? 0 : divergence(wanted, got_);
        position.likeliest = likeliest(got_);
        const auto margin = [&](int best, int other) {
            if (best == other) return 0.0;
            if (best < 0 || other < 0) return std::numeric_limits<double>::infinity();
            return double(wanted[size_t(best)]) - wanted[size_t(other)];
        };
        position.margin = margin(likeliest(wanted), position.likeliest);
        text.positions.push_back(position);

        const int token = first + row - prompt_size + 1;  // index in the answer, after this row
        if (token < 0 || token >= int(text.ids.size())) continue;
        if (text.fork && text.fork->at == token)
            text.fork->margin = margin(text.fork->reference, text.fork->device);
        const bool shared = !text.fork || token <= text.fork->at;  // everything before is equal
        if (shared && !text.prefill_fork && position.likeliest != text.ids[size_t(token)])
            text.prefill_fork = token;
    }
}

}  // namespace

bool ComparedDevice::identical() const {
    return identical_ops() == int64_t(ops.size()) &&
           std::all_of(ops.begin(), ops.end(),
                       [](const ComparedOp& op) { return op.carried.identical(); });
}

int64_t ComparedDevice::identical_ops() const {
    return std::count_if(ops.begin(), ops.end(),
                         [](const ComparedOp& op) { return op.alone.identical(); });
}

Acceptance acceptance(const ComparedDevice& device) {
    Acceptance sum;
    for (const ComparedText& text : device.texts) {
        if (!text.drafting) continue;
        sum.cycles += text.drafting->cycles;
        sum.tokens += text.drafting->cycle_tokens;
        const std::vector<int>& depths = text.drafting->accepted_by_depth;
        sum.by_depth.resize(std::max(sum.by_depth.size(), depths.size()));
        for (size_t d = 0; d < depths.size(); ++d) sum.by_depth[d] += depths[d];
    }
    return sum;
}

const ComparedOp* final_state(const ComparedDevice& device) {
    const ComparedOp* last = nullptr;
    for (const ComparedOp& op : device.ops)
        if (op.place.name == kFinalNorm) last = &op;
    return last;
}

Comparison compare(std::span<const std::unique_ptr<ComparedModel>> models,
                   const Tokenizer& tokenizer, const CompareTask& task) {
    return Comparer(models, tokenizer, task).run();
}

}  // namespace aerie
