// The flags of llama.cpp that aerie understands, or refuses by their own name.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

struct PeerFlag {
    enum class Does {
        means,       // `text` is the flag of ours that it stands for
        means_here,  // the same where the command has that flag; elsewhere without effect
        nothing,     // accepted without effect
        layers,      // a number of layers on the GPU: none is --device cpu, others have no effect
        refused      // `text` says what to do instead
    };
    enum class Value { none, one, on_or_off };  // on_or_off: optional; on, off, auto, 0 or 1
    std::string_view names;                     // separated by commas
    Does does;
    Value value;
    const char* text = "";
    const char* before_value = "";  // put before the value
};

// The row of that name, such as "-ngl"; null if there is none.
const PeerFlag* peer_flag(std::string_view name);

}  // namespace aerie
