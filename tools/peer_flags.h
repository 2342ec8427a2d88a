// The flags of llama.cpp that aerie understands, or refuses by their own name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aerie {

struct PeerFlag {
    enum class Does {
        means,       // stands for a flag of ours
        means_here,  // the same where the command has that flag; elsewhere without effect
        nothing,     // accepted without effect
        layers,      // layers on the GPU: 0 is --device cpu; other numbers, all, auto: no effect
        one_device,  // a device among several: 0 and none have no effect, others are refused
        sampler,     // a way of sampling: `neutral`, which asks for nothing, has no effect
        refused      // refused whatever its value
    };
    enum class Value { none, one, number, on_or_off };  // on_or_off: optional; on, off, auto, 0, 1
    std::string_view names;                             // separated by commas
    Does does;
    Value value;
    const char* text = "";          // our flag, or what to do instead of a refused one
    const char* before_value = "";  // prefix of the value, such as "hf:"
    int neutral = 0;
};

std::span<const PeerFlag> peer_flags();
// The row of that name, such as "-ngl"; null if there is none.
const PeerFlag* peer_flag(std::string_view name);

}  // namespace aerie
