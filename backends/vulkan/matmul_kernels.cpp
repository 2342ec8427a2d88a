// Shaders are named by the type of the weight.
#include "vulkan/matmul_kernels.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/quant.h"
#include "vulkan/glue.h"
#include "vulkan/panels.h"

namespace aerie::vulkan {

namespace {

constexpr int kMaxColumns = 8;    // most rows of x per invocation
constexpr int kHalvesStrips = 2;  // strips per workgroup of matmul_halves
// Bytes of shared memory per panel and column in matmul_halves: two stages, each with a high and a
// low part of 48 bytes.
constexpr uint32_t kHalfPanelBytes = 2 * 2 * 48;
// Bytes of shared memory beside the panels: the places of an expert's tile (lib/product.glsl), or a
// row's amax (lib/row_here.glsl).
constexpr uint32_t kBesidePanels = 512;

// Names of the shaders of a matmul, for one type of weight.
struct MatmulShaders {
    explicit MatmulShaders(const std::string& name)
        : plain(name),
          dot(name + "_dot"),
          fetch(name + "_fetch"),
          cooperative(name + "_cooperative"),
          cooperative_row(name + "_row_cooperative"),
          plain_normed(plain + "_normed"),
          dot_normed(dot + "_normed"),
          cooperative_normed_row(name + "_normed_row_cooperative") {}

    std::string plain;
    std::string dot;    // quantised types, by packed integer dot products
    std::string fetch;  // matmul_fetch: subgroups load x together
    std::string cooperative;
    std::string cooperative_row;  // f16 only: x is one row of floats
    std::string plain_normed, dot_normed, cooperative_normed_row;
};
struct WeightShaders {
    explicit WeightShaders(DType type)
        : embed(std::string("embed_") + name(type)),
          matmul(std::string("matmul_") + name(type)),
          experts(std::string("expert_matmul_") + name(type)) {}

    std::string embed;
    MatmulShaders matmul, experts;
};

// The names live as long as the program, because kernels are identified by pointers to them.
const WeightShaders& shaders_of(DType type) {
    static const auto all = [] {
        std::vector<WeightShaders> made;
        for (int i = 0; i <= int(DType::IQ4_XS); ++i) made.emplace_back(DType(i));
        return made;
    }();
    return all[size_t(type)];
}

// A driver on a CPU takes long to compile unrolled loops and gains nothing by them.
bool is_cpu(const Abilities& device) {
    return device.traits().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// Most rows of x per workgroup of a kernel with matrices.
uint32_t most_columns(const Abilities& device) {
    return is_cpu(device) ? 32 : 64;
}
uint32_t columns_of(const Abilities& device, const MatrixShape& shape, int rows) {
    return std::clamp(std::bit_ceil(unsigned(rows)), shape.n, most_columns(device));
}

// Tiles per subgroup, when the subgroups of a range of K divide `tiles`.
uint32_t share_of(const Abilities& device, uint32_t tiles) {
    const uint32_t subgroups = kCooperativeInvocations / matrix_subgroup(device.traits());
    return (tiles + subgroups - 1) / subgroups;
}

// The kernel of matmul_cooperative. Its last constants are a subgroup's tiles down a strip and
// across the columns.
MatmulKernel groups_kernel(const Abilities& device, const std::string& shader,
                           const MatrixShape& shape, int rows) {
    const uint32_t columns = columns_of(device, shape, rows);
    const uint32_t subgroups = kCooperativeInvocations / matrix_subgroup(device.traits());
    const uint32_t down = std::min(subgroups, kStripRows / shape.m);
    const uint32_t across = std::min(subgroups / down, columns / shape.n);
    return {{shader.c_str(),
             {columns, shape.m, shape.n, shape.k, kStripRows / shape.m / down,
              columns / shape.n / across},
             required_subgroup(device.traits())},
            int(columns)};
}

// Split-K of matmul_halves: where a weight has few rows, as many ranges of K as keep memory busy.
// The order of the sums depends on it. So it is the same for any number of rows of x, and for all
// limits that a driver may report: every device that can run aerie has the room.
uint32_t halves_split(int outputs) {
    constexpr uint32_t kWorkgroups = 384;
    const uint32_t wanted = kWorkgroups / groups(outputs, kHalvesStrips * kStripRows);
    return std::bit_floor(std::clamp(wanted, 1u, kMaxCooperativeParts));
}

// The kernel of matmul_halves. As many panels are loaded ahead as there are registers, and shared
// memory for x.
MatmulKernel halves_kernel(const Abilities& device, const MatmulShaders& shaders,
                           const MatrixShape& shape, RowsOfX which, int rows, MatrixSize size,
                           const MatmulForm& form) {
    const bool of_row = is_row(which, rows);
    const uint32_t columns = columns_of(device, shape, rows);
    const uint32_t split = halves_split(size.outputs);
    const uint32_t tiles = share_of(device, kHalvesStrips * kStripRows / shape.m);
    uint32_t steps = is_cpu(device) ? 1 : columns > 16 ? 2 : 4;
    // More tiles ahead would take the registers of a second workgroup that could run beside this
    // one.
    if (columns > 16 && split > 1 && tiles > 1) steps = 1;
    const uint32_t room = device.traits().shared_bytes - kBesidePanels;
    while (steps > 1 && split * steps * columns * kHalfPanelBytes > room) steps /= 2;
    const std::string& row = form.normed ? shaders.cooperative_normed_row : shaders.cooperative_row;
    const std::string& shader = of_row ? row : shaders.cooperative;
    return {{shader.c_str(),
             {columns, shape.m, shape.n, shape.k, of_row ? uint32_t(size.inner) : 0, steps,
              uint32_t(form.epilogue), form.packed, tiles, split},
             required_subgroup(device.traits())},
            int(columns),
            kHalvesStrips};
}

// The kernel of matmul_parts or matmul_floats, which can normalise x and have an epilogue. `turns`:
// groups or units that are loaded at once.
MatmulKernel finishing_kernel(const std::string& shader, uint32_t columns, uint32_t split,
                              uint32_t turns, int inner, const MatmulForm& form) {
    const uint32_t strips = form.epilogue == Epilogue::none ? 1 : 2;
    const uint32_t normed = form.normed ? uint32_t(inner) : 0;
    return {{shader.c_str(),
             {columns, split, turns, strips * kStripRows, normed, 0, uint32_t(form.epilogue),
              form.packed}},
            int(columns),
            int(strips)};
}

// The kernel of matmul_floats: chooses how many units are loaded at once.
MatmulKernel floats_kernel(const Abilities& device, const std::string& shader, uint32_t columns,
                           int inner, const MatmulForm& form) {
    if (form.epilogue != Epilogue::none)
        columns = std::min(columns, 4u);  // two strips share the
                                          // memory
    const uint32_t turns = is_cpu(device) ? 1 : std::min(8u, 16 / columns);
    return finishing_kernel(shader, columns, uint32_t(device.split()), turns, inner, form);
}

// The kernel of matmul_parts: chooses how many parts of K run side by side, and how many groups are
// loaded at once.
MatmulKernel parts_kernel(const Abilities& device, const std::string& shader, uint32_t columns,
                          int inner, const MatmulForm& form) {
    const unsigned parts = groups(inner, kSumPart);
    const uint32_t most = form.epilogue != Epilogue::none && columns > 4 ? 2 : 4;  // parts that fit
    const uint32_t split = device.split() == 1 ? 1 : std::min(std::bit_floor(parts), most);
    const uint32_t most_turns = columns > 4 ? 4 : 8;
    const uint32_t turns =
        is_cpu(device) ? most_turns / 4 : most_turns;  // compiling takes longest there
    return finishing_kernel(shader, columns, split, turns, inner, form);
}

}  // namespace

const char* embed_shader(DType table) {
    return shaders_of(table).embed.c_str();
}

bool takes_halves(const Abilities& device, DType weight) {
    return weight == DType::F16 && device.matrix_shape(weight);
}

bool finishes(const Abilities& device, DType weight, int rows, const MatmulForm& form) {
    if (takes_halves(device, weight)) return form.epilogue != Epilogue::gated || !form.packed;
    const bool in_matrices = device.matrix_shape(weight) && rows > kMaxColumns;
    // With float weights, two strips take twice the invocations.
    const uint32_t strips = is_quantised(weight) || form.epilogue == Epilogue::none ? 1 : 2;
    const bool has_room =
        strips * kStripRows * uint32_t(device.split()) <= device.traits().group_size;
    return !in_matrices && has_room && device.fetch_lanes() == 0;
}

bool norms(const Abilities& device, DType weight, int inner) {
    constexpr int kMaxNormed = 8192;  // kMaxNormed of norm_here.glsl
    return finishes(device, weight, 1, {}) && (!is_quantised(weight) || inner <= kMaxNormed);
}

MatmulKernel matmul_kernel(const Abilities& device, DType weight, RowsOfX which, int rows,
                           MatrixSize size, MatmulForm form) {
    const WeightShaders& all = shaders_of(weight);
    const MatmulShaders& shaders = which == RowsOfX::all ? all.matmul : all.experts;
    const MatrixShape shape = device.matrix_shape(weight);
    if (takes_halves(device, weight))
        return halves_kernel(device, shaders, shape, which, rows, size, form);
    if (shape && rows > kMaxColumns) return groups_kernel(device, shaders.cooperative, shape, rows);
    // More columns of a float weight share each conversion of an element.
    const bool fetches = device.fetch_lanes() > 0;
    const int most = fetches && !is_quantised(weight) ? 2 * kMaxColumns : kMaxColumns;
    const uint32_t columns = std::bit_ceil(unsigned(std::min(rows, most)));
    if (fetches) return {{shaders.fetch.c_str(), {columns, device.fetch_lanes()}}, int(columns)};
    const std::string& plain = form.normed ? shaders.plain_normed : shaders.plain;
    const std::string& dot = form.normed ? shaders.dot_normed : shaders.dot;
    if (!is_quantised(weight)) return floats_kernel(device, plain, columns, size.inner, form);
    return parts_kernel(device, device.integer_dot() ? dot : plain, columns, size.inner, form);
}

}  // namespace aerie::vulkan
