// The decoder layer of a head: forward, and the gradients of its parameters and of its input.
#pragma once

#include <vector>

#include "train/batch.h"
#include "train/trained_head.h"

namespace aerie::train {

// The values of one depth's forward pass that its gradient needs; R rows.
struct LayerPass {
    Matrix x;                // [R, columns of qkv]: what qkv multiplies
    Matrix hidden;           // [R, H]: the residual that enters the layer
    Matrix qkv;              // [R, query width + 2 kv width], rotated
    Matrix attended, lse;    // [R, query width], [R, heads]
    Matrix middle;           // [R, H]: hidden + o(attended)
    Matrix normed, inverse;  // [R, H], [R, 1]: post norm of `middle`
    Matrix gate_up;          // [R, 2 I]
    Matrix gated;            // [R, I]
    Matrix out;              // [R, H]
    Matrix dqkv;             // [R, columns of qkv]: gradients of q, k and v

    LayerPass first_rows(int rows) const;
};

class DecoderLayer {
  public:
    DecoderLayer(TrainingDevice& device, TrainedHead& head, int max_rows);

    LayerPass make_pass(int rows);
    // Pass `depth` of `passes`: from x and hidden to out. Earlier depths have run.
    void forward(std::span<LayerPass> passes, size_t depth, const TrainingTexts& texts);
    // From dout, the gradient of out, to dx and dhidden. Later depths have gone back before. Adds
    // to the gradients of the parameters.
    void backward(std::span<LayerPass> passes, size_t depth, const TrainingTexts& texts,
                  const Matrix& dout, const Matrix& dx, const Matrix& dhidden);

  private:
    struct Parts {
        std::vector<Matrix> keys, values;
    };
    Matrix queries(const Matrix& qkv) const;
    Matrix rotated(const Matrix& qkv) const;
    Parts parts(std::span<const LayerPass> passes, size_t depth, Matrix LayerPass::*qkv) const;

    TrainingDevice& device_;
    TrainedHead& head_;
    Matrix dgated_, dgate_up_, dnormed_, dattended_;
};

}  // namespace aerie::train
