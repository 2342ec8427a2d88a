// A head on a training device, with everything that its training needs.
#pragma once

#include "core/fair_mutex.h"
#include "engine/model.h"
#include "train/trainer.h"
#include "train/training_state.h"

namespace aerie::train {

// The setup of the model's own head. Throws UsageError if it is no EAGLE head, or has norms that
// are not trained.
TrainingSetup setup_of_head(const ModelFiles& files, const TrainingPlan& plan);

struct HeadTraining {
    // Texts have at most `positions` tokens. `mutex` is held during each pass of the target; null:
    // nobody else uses the model. The model must outlive this object. The parameters are zero.
    // Throws Error.
    HeadTraining(Model& model, TrainingDevice& device, const TrainingSetup& setup, int positions,
                 FairMutex* mutex = nullptr);
    HeadTraining(const HeadTraining&) = delete;  // its parts refer to each other
    HeadTraining& operator=(const HeadTraining&) = delete;

    // Gives the head the parameters of one that was never trained.
    void begin_anew(uint64_t seed);

    TrainingDevice& device;
    const ModelFiles& files;
    DraftVocabulary vocabulary;
    TrainedHead head;
    TargetReader reader;
    Trainer trainer;
};

}  // namespace aerie::train
