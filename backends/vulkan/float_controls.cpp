// A module consists of a header, capabilities, other declarations, entry points, execution modes,
// and the rest. Each instruction begins with its length and its opcode. SPIR-V 1.4 and later have
// float controls without an extension.
#include "vulkan/float_controls.h"

#include "vulkan/spirv.h"

namespace aerie::vulkan {

namespace {

constexpr uint32_t kOpEntryPoint = 15, kOpExecutionMode = 16;
constexpr uint32_t kDenormPreserve = 4459, kSignedZeroInfNanPreserve = 4461,
                   kRoundingModeRte = 4462;

struct Mode {
    uint32_t mode, width;

    uint32_t capability() const { return mode + 5; }
};

std::vector<Mode> modes_of(const FloatControls& controls) {
    std::vector<Mode> modes;
    if (controls.denormals) modes.push_back({kDenormPreserve, 32});
    if (controls.halves) modes.push_back({kDenormPreserve, 16});
    if (controls.halves && controls.doubles_with_halves) modes.push_back({kDenormPreserve, 64});
    if (controls.infinities) modes.push_back({kSignedZeroInfNanPreserve, 32});
    if (controls.rounding) modes.push_back({kRoundingModeRte, 32});
    return modes;
}

}  // namespace

std::vector<uint32_t> with_float_controls(std::span<const uint32_t> words,
                                          const FloatControls& controls) {
    const std::vector<Mode> modes = modes_of(controls);
    std::vector<uint32_t> out(words.begin(), words.begin() + kSpirvHeaderWords);
    uint32_t declared = 0;  // each capability is declared once
    for (const Mode& mode : modes)
        if (declared != mode.capability())
            out.insert(out.end(), {2u << 16 | kOpCapability, declared = mode.capability()});
    for (size_t i = kSpirvHeaderWords; i < words.size();) {
        const size_t length = words[i] >> 16;
        const auto from = words.begin() + std::ptrdiff_t(i);
        out.insert(out.end(), from, from + std::ptrdiff_t(length));
        // Our shaders have one entry point; its id is the second operand.
        if ((words[i] & 0xffffu) == kOpEntryPoint)
            for (const Mode& mode : modes)
                out.insert(out.end(),
                           {4u << 16 | kOpExecutionMode, words[i + 2], mode.mode, mode.width});
        i += length;
    }
    return out;
}

}  // namespace aerie::vulkan
