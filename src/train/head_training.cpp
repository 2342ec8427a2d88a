#include "train/head_training.h"

#include "core/error.h"
#include "core/quant.h"
#include "draft/heads/eagle3_files.h"
#include "draft/heads/kinds.h"
#include "model/tensor_rows.h"

namespace aerie::train {

namespace {

// The rows of a matrix of the target, as f32.
std::vector<float> target_matrix(const ModelFiles& files, const std::string& name) {
    const ModelConfig& config = files.config;
    const int64_t shape[] = {config.vocab, config.hidden};
    const Checkpoint& tensors = files.target.tensors;
    const TensorRows rows(tensors, tensors.get(name, shape), DType::F32, {0, config.hidden});
    std::vector<float> values(size_t(config.vocab) * size_t(config.hidden));
    std::vector<std::byte> row(size_bytes(rows.type(), config.hidden));
    for (int r = 0; r < config.vocab; ++r) {
        rows.read(r, 1, row.data());
        unpack(values.data() + size_t(r) * size_t(config.hidden), row.data(), rows.type(),
               size_t(config.hidden));
    }
    return values;
}

Matrix upload(TrainingDevice& device, const ModelConfig& config, const std::vector<float>& values) {
    const Matrix matrix = device.allocate(config.vocab, config.hidden);
    device.write(matrix, std::span<const float>(values));
    return matrix;
}

// The target's embedding, and its LM head if the kind of head reads that.
struct TargetMatrices {
    TargetMatrices(TrainingDevice& device, const ModelFiles& files, bool with_lm_head)
        : embedding(upload(device, files.config, target_matrix(files, kEmbedding))) {
        if (with_lm_head)
            lm_head = files.config.tied_embeddings
                          ? embedding
                          : upload(device, files.config, target_matrix(files, kLmHead));
    }

    static constexpr const char *kEmbedding = "model.embed_tokens.weight",
                                *kLmHead = "lm_head.weight";
    Matrix embedding, lm_head;
};

Trainer trainer_of(HeadTraining& of, const TrainingSetup& setup, int positions) {
    const TargetMatrices target(of.device, of.files, setup.shape.draft_vocab == 0);
    return Trainer(of.device, of.head, of.reader, of.vocabulary, target.embedding, target.lm_head,
                   setup.plan, positions);
}

}  // namespace

TrainingSetup setup_of_head(const ModelFiles& files, const TrainingPlan& plan) {
    const ModelConfig& target = files.config;
    const HeadConfig& head = *files.head_config;
    const bool is_eagle3 = head.kind->method.name == "eagle3";
    if (!is_eagle3 && head.kind->method.name != "eagle2")
        throw UsageError("only EAGLE heads are trained, and the files are " + head.kind->name);
    TrainingSetup setup;
    setup.plan = plan;
    setup.taps = Taps{target.layers};
    if (is_eagle3) {
        const Eagle3Shape& shape = eagle3_shape(head);
        if (shape.norms_taps || shape.norms_features || shape.norms_residual || shape.norms_state)
            throw UsageError("the head has norms that aerie does not train yet");
        setup.taps = shape.taps.empty() ? usual_taps(target.layers) : shape.taps;
        for (const int32_t id : read_target_ids(head, files.head->tensors))
            setup.draft_ids.push_back(id);
        if (setup.draft_ids.empty()) setup.draft_ids = DraftVocabulary::all(target.vocab).ids;
    }
    setup.shape = shape_of(head, int(setup.taps.size()), int(setup.draft_ids.size()));
    return setup;
}

HeadTraining::HeadTraining(Model& model, TrainingDevice& device, const TrainingSetup& setup,
                           int positions, FairMutex* mutex)
    : device(device),
      files(model.files()),
      vocabulary(setup.draft_ids.empty() ? DraftVocabulary::all(setup.shape.vocab)
                                         : DraftVocabulary::of(setup.draft_ids, setup.shape.vocab)),
      head(device, setup.shape),
      reader(model.backend(), model.target(), device, positions, setup.taps,
             setup.shape.draft_vocab == 0, mutex),
      trainer(trainer_of(*this, setup, positions)) {}

void HeadTraining::begin_anew(uint64_t seed) {
    const bool is_tied = files.config.tied_embeddings;
    initialise(device, head, vocabulary,
               target_matrix(files, is_tied ? TargetMatrices::kEmbedding : TargetMatrices::kLmHead),
               seed);
}

}  // namespace aerie::train
