// Passes go through an ObservedBackend; the labels of its ops identify them.
#include "measure/compared_model.h"

#include <algorithm>

#include "backend/tensor_plan.h"
#include "core/error.h"
#include "core/quant.h"

namespace aerie {

namespace {

// Upper bound on the bytes of all op outputs for one row, in f32.
size_t pass_row_bytes(const ModelConfig& config) {
    const size_t layer =
        size_t(4 * config.hidden + 2 * config.qkv_columns() + config.attention_columns() +
               3 * config.intermediate + config.experts.count +
               config.experts.chosen * (3 * config.experts.intermediate + config.hidden));
    return sizeof(float) *
           (size_t(config.layers) * layer + size_t(3 * config.hidden + config.vocab));
}

ObservedBackend* observed(std::unique_ptr<Backend>& backend) {
    auto decorated = std::make_unique<ObservedBackend>(std::move(backend));
    ObservedBackend* observed = decorated.get();
    backend = std::move(decorated);
    return observed;
}

KvShape given_shape(const Model& model) {
    const ModelConfig& config = model.files().config;
    return {config.layers, config.kv_columns(), model.options().kv, model.files().context};
}

// Observes a backend until the end of the scope.
class Watch {
  public:
    Watch(ObservedBackend& backend, ObservedBackend::Observer observer) : backend_(backend) {
        backend_.observe(std::move(observer));
    }
    ~Watch() { backend_.observe({}); }

  private:
    ObservedBackend& backend_;
};

}  // namespace

std::string to_string(const OpPlace& op) {
    return op.layer < 0 ? op.name : "layer " + std::to_string(op.layer) + ", " + op.name;
}

void OpValues::read(Backend& be, Tensor tensor) {
    dtype = tensor.dtype;
    rows = tensor.rows;
    cols = tensor.cols;
    bytes.resize(dense_bytes(dtype, rows, cols));
    be.read(tensor, bytes.data());
}

void OpValues::write(Backend& be, Tensor tensor) const {
    if (tensor.dtype == dtype) {
        be.write(tensor, bytes.data());
        return;
    }
    std::vector<float> values;
    floats(values);
    if (tensor.dtype == DType::F32) {
        be.write(tensor, values.data());
        return;
    }
    std::vector<BlockI8G32> blocks;
    for (size_t i = 0; i < values.size(); i += kGroup) blocks.push_back(pack_i8g32(&values[i]));
    be.write(tensor, blocks.data());
}

void OpValues::floats(std::vector<float>& values) const {
    values.resize(size_t(rows) * size_t(cols));
    if (dtype == DType::F32) {
        std::copy_n(reinterpret_cast<const float*>(bytes.data()), values.size(), values.data());
        return;
    }
    const auto* blocks = reinterpret_cast<const BlockI8G32*>(bytes.data());
    for (size_t i = 0; i < values.size(); i += kGroup) unpack(&values[i], blocks[i / kGroup]);
}

ComparedModel::ComparedModel(ModelFiles files, const LoadOptions& options,
                             std::unique_ptr<Backend> backend)
    : backend_(observed(backend)),
      model_(std::move(files), options, std::move(backend)),
      plain_(model_.start_session(make_none())),
      given_kv_(model_.backend(), given_shape(model_)),
      given_pages_(given_kv_.begin()) {
    const ModelConfig& config = model_.files().config;
    if (options.draft.method != kNoDrafts) drafted_ = model_.start_session(options.draft);
    TensorPlan plan;
    plan.add(rows_, DType::I32, kObservedRows, kRowInts);
    plan.add(logits_, DType::F32, kObservedRows, config.vocab);
    memory_ = plan.allocate(*backend_);
    row_bytes_ = pass_row_bytes(config);
    find_ops();
}

// Finds the ops by a pass over an arbitrary text. Ops with the same label get a number.
void ComparedModel::find_ops() {
    const int text[] = {0, 0};
    forward(text, 0, 2, Inputs::given, [&](const ObservedBackend::Seen& seen) {
        const std::string name = *seen.label.name ? seen.label.name : std::string(seen.op);
        OpPlace place{seen.label.layer, name};
        for (int n = 2; std::find(ops_.begin(), ops_.end(), place) != ops_.end(); ++n)
            place.name = name + " " + std::to_string(n);
        ops_.push_back(place);
    });
}

void ComparedModel::run(std::span<const int> text, int first, int count, Inputs inputs,
                        const OnOp& on_op) {
    size_t op = 0;
    forward(text, first, count, inputs, [&](const ObservedBackend::Seen& seen) {
        if (op < ops_.size()) on_op(op, seen.out);
        ++op;
    });
    if (op != ops_.size())
        throw Error("a pass of " + model_.files().config.architecture + " has " +
                    std::to_string(op) + " ops, the first one had " + std::to_string(ops_.size()));
}

void ComparedModel::forward(std::span<const int> text, int first, int count, Inputs inputs,
                            const ObservedBackend::Observer& observer) {
    check_tokens(text.subspan(size_t(first), size_t(count)), model_.files().config.vocab);
    const bool is_own = inputs == Inputs::own;
    KvPages& pages = is_own ? plain_.session->sequence().pages() : given_pages_;
    pages.hold(first + count);
    std::vector<Row> rows;
    for (int i = first; i < first + count; ++i)
        rows.push_back(causal_row(text[size_t(i)], i, pages.sequence()));
    const Tensor block = rows_.row_range(0, count);
    backend_->write(block, rows.data());
    const Watch watch(*backend_, observer);
    TargetPass pass;
    pass.rows = {block};
    pass.kv = is_own ? &plain_.session->kv() : &given_kv_;
    pass.logits = logits_.row_range(0, count);
    model_.target().forward(pass);
}

void ComparedModel::read_logits(int row, std::vector<float>& logits) {
    logits.resize(size_t(logits_.cols));
    backend_->read(logits_.row_range(row, 1), logits.data());
}

}  // namespace aerie
