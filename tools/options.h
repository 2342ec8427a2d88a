// The command line of the `aerie` program, parsed; CLI11 stays in options.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "engine/sampling.h"

namespace aerie {

// What every command that opens a model takes.
struct ModelOptions {
    std::string model = "aerie-tiny";
    std::string head;  // empty: the one beside the target, if there is one
    std::string device;
    std::string draft;  // empty: eagle2 where there is a head, else none
    int threads = 0;
    int context = 0;
    std::optional<DType> weights, draft_weights;
    DType kv = DType::F16;
    DraftOptions drafting;  // all but the kind
};

struct GenerateOptions {
    ModelOptions model;
    std::optional<std::string> prompt;
    std::string prompt_file;  // "-": stdin
    bool chat = false;
    int max_tokens = -1;
    std::optional<double> temperature, top_p, min_p, repetition_penalty;
    std::optional<int> top_k;
    double frequency_penalty = 0, presence_penalty = 0;
    std::optional<uint64_t> seed;
    std::vector<std::string> stops;
    bool logprobs = false, json = false, quiet = false, compare_plain = false;
};

struct InfoOptions {
    ModelOptions model;
    bool json = false;
};

struct DevicesOptions {
    bool json = false;
};

struct CommandLine {
    std::optional<GenerateOptions> generate;
    std::optional<InfoOptions> info;
    std::optional<DevicesOptions> devices;
    int exit_code = 0;  // where no command is set: help was shown or the usage was wrong
};

// Prints help, version or a usage error itself. Flag > AERIE_* variable > default.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace aerie
