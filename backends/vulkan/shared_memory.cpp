// An instruction begins with its length and its opcode. Optional memory operands follow the
// required operands: a mask, then the operands that its bits call for, in order.
#include "vulkan/shared_memory.h"

#include <map>
#include <set>

#include "vulkan/spirv.h"

namespace aerie::vulkan {

namespace {

constexpr size_t kBound = 3;  // a word of the header: the largest id + 1
constexpr uint32_t kOpConstant = 43, kOpLoad = 61, kOpStore = 62, kOpControlBarrier = 224,
                   kOpMatrixLoad = 4457, kOpMatrixStore = 4458;
constexpr uint32_t kVulkanMemoryModel = 5345;
constexpr uint32_t kMakeAvailable = 0x8, kMakeVisible = 0x10;  // bits of an access; each has a
                                                               // scope
constexpr uint32_t kWorkgroupMemory = 0x100;                   // semantics of a barrier
constexpr uint32_t kBarrierMakesBoth = 0x2000 | 0x4000;

using Instruction = std::vector<uint32_t>;

uint32_t opcode(const Instruction& one) {
    return one[0] & 0xffffu;
}

template <class Body>
void for_each_instruction(std::span<const uint32_t> words, const Body& body) {
    for (size_t i = kSpirvHeaderWords; i < words.size(); i += words[i] >> 16)
        body(Instruction(words.begin() + std::ptrdiff_t(i),
                         words.begin() + std::ptrdiff_t(i + (words[i] >> 16))));
}

// Index of the mask of memory operands; 0: the instruction has none.
size_t mask_of(const Instruction& one) {
    static const std::map<uint32_t, size_t> places = {
        {kOpLoad, 4}, {kOpStore, 3}, {kOpMatrixLoad, 6}, {kOpMatrixStore, 5}};
    const auto place = places.find(opcode(one));
    return place != places.end() && place->second < one.size() ? place->second : 0;
}

// Clears the bits of an access and removes their scopes, which are its last operands.
void leave_to_barriers(Instruction& access) {
    const size_t place = mask_of(access);
    if (!place) return;
    for (const uint32_t bit : {kMakeAvailable, kMakeVisible}) {
        if (!(access[place] & bit)) continue;
        access[place] &= ~bit;
        access.pop_back();
    }
    access[0] = uint32_t(access.size()) << 16 | opcode(access);
}

struct Module {
    bool has_model = false;
    std::set<uint32_t> semantics;  // ids of constants that barriers use
};

Module look_at(std::span<const uint32_t> words) {
    Module module;
    for_each_instruction(words, [&](const Instruction& one) {
        if (opcode(one) == kOpCapability && one[1] == kVulkanMemoryModel) module.has_model = true;
        if (opcode(one) == kOpControlBarrier) module.semantics.insert(one[3]);
    });
    return module;
}

}  // namespace

std::vector<uint32_t> ordered_by_barriers(std::span<const uint32_t> words) {
    const Module module = look_at(words);
    if (!module.has_model) return {words.begin(), words.end()};
    std::vector<uint32_t> out(words.begin(), words.begin() + kSpirvHeaderWords);
    std::map<uint32_t, uint32_t> stronger;  // constants of barriers: new id by old id
    for_each_instruction(words, [&](Instruction one) {
        leave_to_barriers(one);
        if (opcode(one) == kOpControlBarrier && stronger.count(one[3])) one[3] = stronger[one[3]];
        out.insert(out.end(), one.begin(), one.end());
        if (opcode(one) != kOpConstant || !module.semantics.count(one[2]) ||
            !(one[3] & kWorkgroupMemory))
            return;
        stronger[one[2]] = out[kBound];
        out.insert(out.end(), {one[0], one[1], out[kBound], one[3] | kBarrierMakesBoth});
        ++out[kBound];
    });
    return out;
}

}  // namespace aerie::vulkan
