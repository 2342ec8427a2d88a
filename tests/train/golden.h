// The records of an independent trainer (tests/data/train/README.md), and what is needed to repeat
// them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/json.h"
#include "train/batch.h"
#include "train/trained_head.h"

namespace aerie::test {

// Folder of the records; $AERIE_TEST_TRAIN, or tests/data/train.
std::filesystem::path train_data();

// Every number of a JSON array.
std::vector<double> numbers(const Json& array);

struct Golden {
    explicit Golden(const std::string& name);  // "eagle3", "eagle2-bundled", ...

    const Json& at(std::initializer_list<const char*> path) const;

    std::string name;
    Json record;
};

// The texts of the records, and four of them as a batch.
class GoldenTexts {
  public:
    GoldenTexts();
    // The texts that step `step` learns from.
    train::TrainingTexts batch(int step) const;

  private:
    std::vector<std::vector<int>> tokens_;
    std::vector<std::vector<bool>> masks_;
};

// A tensor of a checkpoint as floats; throws Error if it is absent.
std::vector<float> floats_of(const std::filesystem::path& folder, const std::string& name);

// aerie-tiny on a training device.
class TinyTarget {
  public:
    explicit TinyTarget(TrainingDevice& device);

    // Row by row for all tokens of all sequences: the hidden states that enter layers 2, 3 and 5
    // side by side, the features after the final norm, and the logits.
    struct Outputs {
        std::vector<double> taps, features, logits;
    };
    Outputs run(const train::TrainingTexts& texts);

    Matrix embedding, lm_head;
    static constexpr int kHidden = 256, kVocab = 4096;

  private:
    struct Layer {
        Matrix attention_norm, qkv, o, mlp_norm, gate_up, down;
    };
    TrainingDevice& device_;
    std::vector<Layer> layers_;
    Matrix norm_;
};

// The head to start from, and its draft vocabulary's target ids (EAGLE-3; else empty).
struct StartedHead {
    StartedHead(TrainingDevice& device, const std::string& name);

    train::TrainedHead head;
    std::vector<int> draft_ids;
};

// The training inputs of a head with this draft vocabulary, from the outputs of the target. An
// empty vocabulary is that of EAGLE-2: all tokens, features and goals; `noise` is added to
// features.
train::TargetOutputs outputs_for(TrainingDevice& device, const train::TrainingTexts& texts,
                                 const TinyTarget::Outputs& made, std::span<const int> draft_ids,
                                 std::span<const float> noise = {});

// Compares a tensor with its summary in a record, as tests/data/train/README.md bounds it: values
// against `tolerance` times the norm `scale` (0: the tensor's own L2 norm).
void expect_summary(const Json& summary, std::span<const double> tensor, double tolerance,
                    const std::string& what, double scale = 0);

}  // namespace aerie::test
