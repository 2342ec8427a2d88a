// The model on one device as a comparison uses it: its greedy texts, and passes with observed ops.
#pragma once

#include <string>
#include <vector>

#include "backend/observed.h"
#include "engine/generation.h"
#include "engine/model.h"

namespace aerie {

constexpr int kObservedRows = 64;  // most rows of an observed pass

// The place of an op in a pass.
struct OpPlace {
    int layer = -1;  // -1: outside the layers
    std::string name;

    bool operator==(const OpPlace&) const = default;
};
std::string to_string(const OpPlace& op);  // "layer 3, gated"

// The output of an op, on the host and in its own type.
struct OpValues {
    DType dtype = DType::F32;
    int rows = 0, cols = 0;
    std::vector<std::byte> bytes;  // dense

    void read(Backend& be, Tensor tensor);
    // Writes to a tensor of this shape and any type.
    void write(Backend& be, Tensor tensor) const;
    void floats(std::vector<float>& values) const;  // [rows * cols]
};

class ComparedModel {
  public:
    // Loads a model on this device. options.draft is the method of its drafted texts; with method
    // none there are no drafted texts. Throws Error.
    ComparedModel(ModelFiles files, const LoadOptions& options, std::unique_ptr<Backend> backend);

    const Capabilities& capabilities() { return model_.backend().capabilities(); }
    Model& model() { return model_; }
    bool drafts() const { return drafted_.session != nullptr; }
    GenerationResult plain(const Tokenizer& tokenizer, const Request& request) {
        return generate(*plain_.session, tokenizer, request);
    }
    GenerationResult drafted(const Tokenizer& tokenizer, const Request& request) {
        return generate(*drafted_.session, tokenizer, request);
    }

    // The ops of a pass, in order.
    const std::vector<OpPlace>& ops() const { return ops_; }
    // Most host bytes that the outputs of all ops for one row take.
    size_t row_bytes() const { return row_bytes_; }

    // own: each op reads what this device computed. given: each op reads what on_op wrote in place
    // of earlier outputs, so that it is seen by itself. The two kinds have a KV cache each, filled
    // by earlier passes of the same kind.
    enum class Inputs { own, given };
    using OnOp = std::function<void(size_t op, Tensor out)>;  // `op`: index into ops()
    // Runs positions [first, first + count) of a text, at most kObservedRows; earlier positions
    // must have been run before.
    void run(std::span<const int> text, int first, int count, Inputs inputs, const OnOp& on_op);
    // Reads the logits of row `row` of the last pass.
    void read_logits(int row, std::vector<float>& logits);

  private:
    void find_ops();
    void forward(std::span<const int> text, int first, int count, Inputs inputs,
                 const ObservedBackend::Observer& observer);

    ObservedBackend* backend_;  // owned by model_
    Model model_;
    Model::Drafting plain_, drafted_;
    KvPool given_kv_;
    KvPages given_pages_;
    Buffer memory_;
    Tensor rows_, logits_;
    std::vector<OpPlace> ops_;
    size_t row_bytes_ = 0;
};

}  // namespace aerie
