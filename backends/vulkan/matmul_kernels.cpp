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

constexpr int kMostColumns = 8;   // rows of x that an invocation of matmul has
constexpr int kHalvesStrips = 2;  // of a workgroup of matmul_halves
// Of its shared memory, for a panel of a column: two stages, high parts and low ones.
constexpr uint32_t kHalfPanelBytes = 2 * 2 * 48;
// Beside it: where the places of a tile are (lib/product.glsl), or a row's largest number.
constexpr uint32_t kBesidePanels = 512;

// Shaders of one kind of matmul for weights of some type.
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
    std::string dot;    // of quantised ones, by packed integer dot products
    std::string fetch;  // those, and x is fetched together
    std::string cooperative;
    std::string cooperative_row;  // of f16: x is one row of floats
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

// They live as long as the program: kernels are known by them.
const WeightShaders& shaders_of(DType type) {
    static const auto all = [] {
        std::vector<WeightShaders> made;
        for (int i = 0; i <= int(DType::IQ4_XS); ++i) made.emplace_back(DType(i));
        return made;
    }();
    return all[size_t(type)];
}

// Its compiler takes long for what is unrolled, and gains nothing.
bool is_cpu(const Abilities& device) {
    return device.traits().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// Rows of x that a workgroup has at most in matrices.
uint32_t most_columns(const Abilities& device) {
    return is_cpu(device) ? 32 : 64;
}
uint32_t columns_of(const Abilities& device, const MatrixShape& shape, int rows) {
    return std::clamp(std::bit_ceil(unsigned(rows)), shape.n, most_columns(device));
}

// Tiles that a subgroup has of so many.
uint32_t share_of(const Abilities& device, uint32_t tiles) {
    const uint32_t subgroups = kCooperativeInvocations / matrix_subgroup(device.traits());
    return (tiles + subgroups - 1) / subgroups;
}

// Tiles of a subgroup down a strip, and across.
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

// Parts of k that the workgroups of matmul_halves have: where a weight has few rows, as many as
// keep memory busy. The order of the sums depends on it. So it is the same for any number of rows
// of x, and for all that a driver may report: every device that can run aerie has the room.
uint32_t halves_split(int outputs) {
    constexpr uint32_t kWorkgroups = 384;
    const uint32_t wanted = kWorkgroups / groups(outputs, kHalvesStrips * kStripRows);
    return std::bit_floor(std::clamp(wanted, 1u, kMostCooperativeParts));
}

// Panels are read ahead as far as there are registers, and shared memory for x.
MatmulKernel halves_kernel(const Abilities& device, const MatmulShaders& shaders,
                           const MatrixShape& shape, RowsOfX which, int rows, MatrixSize size,
                           const MatmulForm& form) {
    const bool of_row = is_row(which, rows);
    const uint32_t columns = columns_of(device, shape, rows);
    const uint32_t split = halves_split(size.outputs);
    const uint32_t tiles = share_of(device, kHalvesStrips * kStripRows / shape.m);
    uint32_t steps = is_cpu(device) ? 1 : columns > 16 ? 2 : 4;
    // More tiles ahead take the registers of a workgroup that would be at work beside this one.
    if (columns > 16 && split > 1 && tiles > 1) steps = 1;
    const uint32_t room = device.traits().shared_bytes - kBesidePanels;
    while (steps > 1 && split * steps * columns * kHalfPanelBytes > room) steps /= 2;
    const std::string& row = form.normed ? shaders.cooperative_normed_row : shaders.cooperative_row;
    const std::string& shader = of_row ? row : shaders.cooperative;
    return {{shader.c_str(),
             {columns, shape.m, shape.n, shape.k, of_row ? uint32_t(size.inner) : 0, steps,
              uint32_t(form.finish), form.packed, tiles, split},
             required_subgroup(device.traits())},
            int(columns),
            kHalvesStrips};
}

// Constants 3 to 7 of the kernels that normalise x or finish what they multiply.
MatmulKernel finishing_kernel(const std::string& shader, uint32_t columns, uint32_t split,
                              uint32_t turns, int inner, const MatmulForm& form) {
    const uint32_t strips = form.finish == Finish::none ? 1 : 2;
    const uint32_t normed = form.normed ? uint32_t(inner) : 0;
    return {{shader.c_str(),
             {columns, split, turns, strips * kStripRows, normed, 0, uint32_t(form.finish),
              form.packed}},
            int(columns),
            int(strips)};
}

// Of floats: invocations that share a row, and what each of them reads at once.
MatmulKernel floats_kernel(const Abilities& device, const std::string& shader, uint32_t columns,
                           int inner, const MatmulForm& form) {
    if (form.finish != Finish::none) columns = std::min(columns, 4u);  // two strips have the room
    const uint32_t turns = is_cpu(device) ? 1 : std::min(8u, 16 / columns);
    return finishing_kernel(shader, columns, uint32_t(device.split()), turns, inner, form);
}

// Of matmul_parts: parts of the sum over a row side by side, and groups that are read at once.
MatmulKernel parts_kernel(const Abilities& device, const std::string& shader, uint32_t columns,
                          int inner, const MatmulForm& form) {
    const unsigned parts = groups(inner, kSumPart);
    const uint32_t most = form.finish != Finish::none && columns > 4 ? 2 : 4;  // that have room
    const uint32_t split = device.split() == 1 ? 1 : std::min(std::bit_floor(parts), most);
    const uint32_t most_turns = columns > 4 ? 4 : 8;
    const uint32_t turns =
        is_cpu(device) ? most_turns / 4 : most_turns;  // there compiling takes longest
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
    if (takes_halves(device, weight)) return form.finish != Finish::gated || !form.packed;
    const bool in_matrices = device.matrix_shape(weight) && rows > kMostColumns;
    // Two strips of floats are those of twice the invocations.
    const uint32_t strips = is_quantised(weight) || form.finish == Finish::none ? 1 : 2;
    const bool has_room =
        strips * kStripRows * uint32_t(device.split()) <= device.traits().group_size;
    return !in_matrices && has_room && device.fetch_lanes() == 0;
}

bool norms(const Abilities& device, DType weight, int inner) {
    constexpr int kMostNormed = 8192;  // as norm_here.glsl has it
    return finishes(device, weight, 1, {}) && (!is_quantised(weight) || inner <= kMostNormed);
}

MatmulKernel matmul_kernel(const Abilities& device, DType weight, RowsOfX which, int rows,
                           MatrixSize size, MatmulForm form) {
    const WeightShaders& all = shaders_of(weight);
    const MatmulShaders& shaders = which == RowsOfX::all ? all.matmul : all.experts;
    const MatrixShape shape = device.matrix_shape(weight);
    if (takes_halves(device, weight))
        return halves_kernel(device, shaders, shape, which, rows, size, form);
    if (shape && rows > kMostColumns)
        return groups_kernel(device, shaders.cooperative, shape, rows);
    // Floats are converted once for all columns.
    const bool fetches = device.fetch_lanes() > 0;
    const int most = fetches && !is_quantised(weight) ? 2 * kMostColumns : kMostColumns;
    const uint32_t columns = std::bit_ceil(unsigned(std::min(rows, most)));
    if (fetches) return {{shaders.fetch.c_str(), {columns, device.fetch_lanes()}}, int(columns)};
    const std::string& plain = form.normed ? shaders.plain_normed : shaders.plain;
    const std::string& dot = form.normed ? shaders.dot_normed : shaders.dot;
    if (!is_quantised(weight)) return floats_kernel(device, plain, columns, size.inner, form);
    return parts_kernel(device, device.integer_dot() ? dot : plain, columns, size.inner, form);
}

}  // namespace aerie::vulkan
