// Reads from their SPIR-V, with the constants that are chosen for devices that no machine here has,
// what workgroups of the matmul kernels need: shared memory and invocations. Also checks that
// split-K depends on no limit of a device.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/quant.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/shaders.h"

namespace aerie::vulkan {
namespace {

constexpr uint32_t kKiB = 1024;

// Types, constants and variables of a module, with its constants specialised by those of a kernel.
class Module {
  public:
    Module(std::span<const uint32_t> words, std::span<const uint32_t> special) : special_(special) {
        for (size_t i = 5; i < words.size(); i += words[i] >> 16)
            read(words.subspan(i, words[i] >> 16));
    }

    // Bytes of shared memory of a workgroup, each variable at an address of whole 16 bytes.
    uint32_t shared_bytes() const {
        uint32_t bytes = 0;
        for (const uint32_t type : shared_) bytes += (size_of(type) + 15) / 16 * 16;
        return bytes;
    }
    uint32_t invocations() const {
        if (!size_id_) return local_size_;
        const auto& parts = composites_.at(size_id_);
        return values_.at(parts[0]) * values_.at(parts[1]) * values_.at(parts[2]);
    }

  private:
    struct Type {
        uint32_t bytes = 0;
        std::vector<uint32_t> members = {};
        uint32_t length = 0;  // for an array the id of its length
    };

    void read(std::span<const uint32_t> w) {
        switch (w[0] & 0xffff) {
            case 16:  // execution mode: local size
                if (w[2] == 17) local_size_ = w[3] * w[4] * w[5];
                break;
            case 71:  // decoration: the number of a constant, the size of a workgroup
                if (w[2] == 1) numbers_[w[1]] = w[3];
                if (w[2] == 11 && w[3] == 25) size_id_ = w[1];
                break;
            case 20:
                types_[w[1]] = {4};
                break;
            case 21:
            case 22:
                types_[w[1]] = {w[2] / 8};
                break;
            case 23:
                types_[w[1]] = {types_[w[2]].bytes * w[3]};
                break;
            case 28:
                types_[w[1]] = {0, {w[2]}, w[3]};
                break;
            case 30:
                types_[w[1]] = {0, {w.begin() + 2, w.end()}};
                break;
            case 32:
                types_[w[1]] = {0, {w[3]}};
                break;
            case 41:
                values_[w[2]] = 1;
                break;
            case 42:
                values_[w[2]] = 0;
                break;
            case 43:
                values_[w[2]] = w[3];
                break;
            case 48:
            case 49:
                values_[w[2]] = special_or(w[2], (w[0] & 0xffff) == 48);
                break;
            case 50:
                values_[w[2]] = special_or(w[2], w[3]);
                break;
            case 44:
            case 51:
                composites_[w[2]] = {w.begin() + 3, w.end()};
                break;
            case 52:
                values_[w[2]] = result_of(w[3], w.subspan(4));
                break;
            case 59:
                if (w[3] == 4) shared_.push_back(types_.at(w[1]).members[0]);
                break;
        }
    }

    uint32_t special_or(uint32_t id, uint32_t otherwise) const {
        const auto number = numbers_.find(id);
        const bool given = number != numbers_.end() && number->second < special_.size();
        return given ? special_[number->second] : otherwise;
    }

    uint32_t result_of(uint32_t operation, std::span<const uint32_t> operands) const {
        if (operation == 81)  // OpCompositeExtract
            return values_.at(composites_.at(operands[0])[operands[1]]);
        const auto value = [&](size_t i) {
            const auto found = i < operands.size() ? values_.find(operands[i]) : values_.end();
            return found != values_.end() ? found->second : 0;
        };
        const uint32_t a = value(0), b = value(1);
        switch (operation) {
            case 128:
                return a + b;
            case 130:
                return a - b;
            case 132:
                return a * b;
            case 134:
                return b ? a / b : 0;
            case 137:
                return b ? a % b : 0;
            case 166:
                return a || b;
            case 167:
                return a && b;
            case 168:
                return !a;
            case 169:
                return a ? b : value(2);
            case 170:
            case 164:
                return a == b;
            case 171:
            case 165:
                return a != b;
            case 172:
                return a > b;
            case 174:
                return a >= b;
            case 176:
                return a < b;
            case 178:
                return a <= b;
            case 194:
                return a >> b;
            case 196:
                return a << b;
            case 197:
                return a | b;
            case 199:
                return a & b;
            case 124:
                return a;
            case 126:
                return uint32_t(-int32_t(a));
        }
        ADD_FAILURE() << "constants by operation " << operation;
        return 0;
    }

    uint32_t size_of(uint32_t id) const {
        const Type& type = types_.at(id);
        uint32_t bytes = type.bytes;
        for (const uint32_t member : type.members) bytes += size_of(member);
        return type.length ? bytes * values_.at(type.length) : bytes;
    }

    std::span<const uint32_t> special_;
    std::map<uint32_t, Type> types_;
    std::map<uint32_t, uint32_t> values_, numbers_;
    std::map<uint32_t, std::vector<uint32_t>> composites_;
    std::vector<uint32_t> shared_;  // types of shared variables
    uint32_t local_size_ = 1, size_id_ = 0;
};

struct Wants {
    uint32_t shared_bytes, invocations;
};

// The needs of a kernel. There are few kernels: most sizes of weights share them.
const Wants& wants_of(const Kernel& kernel) {
    static std::map<Kernel, Wants> known;
    const auto found = known.find(kernel);
    if (found != known.end()) return found->second;
    const Module module(find_shader(kernel.shader)->words, kernel.constants);
    return known[kernel] = {module.shared_bytes(), module.invocations()};
}

std::string text_of(const Kernel& kernel) {
    std::string text = kernel.shader;
    for (const uint32_t constant : kernel.constants) text += ' ' + std::to_string(constant);
    return text;
}

// A device with as little as it may have, apart from shared memory.
Traits poorest(uint32_t shared_bytes) {
    Traits traits;
    traits.api_version = VK_API_VERSION_1_3;
    traits.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    traits.queue_family = 0;
    traits.shared_bytes = shared_bytes;
    traits.group_size = 256;
    traits.storage_buffers = 10;
    traits.storage_range = (128 << 20) - 1;
    return traits;
}

const std::vector<MatrixShape>& shapes() {
    static const std::vector<MatrixShape> all = {{},          {16, 8, 16},  {16, 16, 16},
                                                 {8, 16, 16}, {16, 8, 8},   {8, 8, 16},
                                                 {32, 8, 16}, {32, 32, 16}, {16, 32, 16}};
    return all;
}

// Calls body(device, its name) for GPUs of each size of shared memory, shape of matrices and size
// of subgroups.
template <class Body>
void for_each_device(const Body& body) {
    for (const uint32_t kib : {32u, 48u, 64u})
        for (const MatrixShape& shape : shapes())
            for (const uint32_t subgroup : {8u, 16u, 32u, 64u, 128u}) {
                Traits traits = poorest(kib * kKiB);
                traits.subgroup_size = traits.least_subgroup = traits.most_subgroup = subgroup;
                MatrixShape bytes = shape;
                if (bytes) bytes.k = 32;
                body(Abilities(traits, {shape, bytes}, true, 0),
                     std::to_string(kib) + " KiB, " + std::to_string(shape.m) + "x" +
                         std::to_string(shape.n) + ", subgroups of " + std::to_string(subgroup));
            }
}

std::vector<MatmulForm> forms_of(const Abilities& device, DType type, RowsOfX which, int rows,
                                 int inner) {
    std::vector<MatmulForm> forms = {{}};
    if (which == RowsOfX::of_experts) return forms;
    for (const Epilogue epilogue : {Epilogue::gated, Epilogue::rotated})
        for (const bool packed : {false, true}) forms.push_back({epilogue, packed});
    std::erase_if(forms, [&](const MatmulForm& form) {
        return form.epilogue != Epilogue::none && !finishes(device, type, rows, form);
    });
    if (rows == 1 && norms(device, type, inner))
        for (size_t i = forms.size(); i-- > 0;)
            forms.push_back({forms[i].epilogue, forms[i].packed, true});
    return forms;
}

constexpr int kRows[] = {1, 2, 3, 8, 9, 16, 17, 32, 33, 64, 200};
constexpr int kOutputs[] = {32, 1024, 4096, 6144, 8192, 12288, 24576, 128256};

// Calls body(kernel) for every one that multiplies by a weight of some type and size.
template <class Body>
void for_each_kernel(const Abilities& device, const Body& body) {
    for (int i = 0; i < int(DType::I8G32); ++i) {
        if (!find_shader(embed_shader(DType(i)))) continue;
        for (const RowsOfX which : {RowsOfX::all, RowsOfX::of_experts})
            for (const int rows : kRows)
                for (const int outputs : kOutputs)
                    for (const int inner : {512, 4096, 8192, 14336})
                        for (const MatmulForm& form :
                             forms_of(device, DType(i), which, rows, inner))
                            body(matmul_kernel(device, DType(i), which, rows, {outputs, inner},
                                               form));
    }
}

TEST(Workgroups, HaveRoomOnEveryDevice) {
    std::set<std::string> kernels;
    for_each_device([&](const Abilities& device, const std::string& what) {
        ASSERT_EQ(missing_of(device.traits()), "") << what;
        std::set<std::string> here;
        for_each_kernel(device, [&](const MatmulKernel& chosen) {
            const std::string name = text_of(chosen.kernel);
            if (!here.insert(name).second) return;
            const Wants& wants = wants_of(chosen.kernel);
            EXPECT_LE(wants.shared_bytes, device.traits().shared_bytes) << name << ": " << what;
            EXPECT_LE(wants.invocations, device.traits().group_size) << name << ": " << what;
        });
        kernels.insert(here.begin(), here.end());
    });
    EXPECT_GT(kernels.size(), has_matrix_shaders() ? 1000u : 300u);
}

// Every shader, with the default values of its constants.
TEST(Workgroups, OfOtherShadersHaveRoomToo) {
    for (const Shader& shader : all_shaders()) {
        const Module module(shader.words, {});
        EXPECT_LE(module.shared_bytes(), 32 * kKiB) << shader.name;
        EXPECT_LE(module.invocations(), 256u) << shader.name;
    }
    for (const Shader& shader : training_shaders()) {
        const Module module(shader.words, {});
        EXPECT_LE(module.shared_bytes(), 16 * kKiB) << shader.name;
        EXPECT_LE(module.invocations(), 128u) << shader.name;
    }
}

// Drivers change what they report, but a text that was saved must go on as before.
TEST(PartsOfASum, DependOnNoLimit) {
    if (!has_matrix_shaders()) GTEST_SKIP() << "SKIPPED: this build has no cooperative matrices";
    for (const MatrixShape& shape : shapes()) {
        if (!shape) continue;
        const auto parts = [&](uint32_t shared_bytes, uint32_t group_size, uint32_t subgroup,
                               VkPhysicalDeviceType type, int rows, int outputs) {
            Traits traits = poorest(shared_bytes);
            traits.type = type;
            traits.group_size = group_size;
            traits.subgroup_size = traits.least_subgroup = traits.most_subgroup = subgroup;
            const Abilities device(traits, {shape, {}}, true, 0);
            return matmul_kernel(device, DType::F16, RowsOfX::all, rows, {outputs, 4096})
                .kernel.constants[9];
        };
        for (const int outputs : kOutputs) {
            const uint32_t usual =
                parts(32 * kKiB, 256, 32, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 1, outputs);
            for (const uint32_t kib : {32u, 48u, 64u, 100u})
                for (const uint32_t group_size : {256u, 512u, 1024u})
                    for (const uint32_t subgroup : {16u, 64u})
                        for (const auto type :
                             {VK_PHYSICAL_DEVICE_TYPE_CPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU})
                            for (const int rows : {1, 8, 60})
                                ASSERT_EQ(
                                    parts(kib * kKiB, group_size, subgroup, type, rows, outputs),
                                    usual)
                                    << kib << " KiB, " << group_size << ", " << outputs;
        }
    }
}

}  // namespace
}  // namespace aerie::vulkan
