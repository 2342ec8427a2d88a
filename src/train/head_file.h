// A trained head as a folder that aerie and other programs read: config.json and model.safetensors.
#pragma once

#include <filesystem>

#include "model/config.h"
#include "model/target.h"
#include "train/target_reader.h"
#include "train/trained_head.h"

namespace aerie::train {

struct HeadFile {
    const ModelConfig& target;
    const DraftVocabulary& vocabulary;
    Taps taps;  // EAGLE-3: the layers whose inputs the head reads
    DType dtype = DType::F16;
};

// Writes the head; its files take the place of those of an older head at once. Throws Error, and
// std::filesystem::filesystem_error.
void write_head(const std::filesystem::path& folder, TrainingDevice& device,
                const TrainedHead& head, const HeadFile& file);

// Reads the parameters of a head that write_head wrote, or of a published one of the same shape.
// Throws Error naming the tensor that does not fit.
void read_head(const std::filesystem::path& folder, TrainingDevice& device, TrainedHead& head);

}  // namespace aerie::train
