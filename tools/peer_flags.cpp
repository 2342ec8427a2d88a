#include "peer_flags.h"

namespace aerie {

namespace {

using Does = PeerFlag::Does;
using Value = PeerFlag::Value;

constexpr const char* kOneDevice = "a model runs on one device: choose it with --device";
constexpr const char* kNoGrammar = "aerie does not constrain its output yet";
constexpr const char* kNoImages = "aerie reads text alone";
constexpr const char* kNoAdapters = "aerie applies no adapters: merge them into the model first";
constexpr const char* kTree =
    "trees are sized by what they cost here and what is accepted; --tree N,L,K fixes the size";
constexpr const char* kNoSampler =
    "aerie has no such sampler: it has --top-k, --top-p, --min-p and penalties";

constexpr PeerFlag kPeerFlags[] = {
    {"-hf,-hfr,--hf-repo", Does::means, Value::one, "--model", "hf:"},
    {"-hfd,-hfrd,--hf-repo-draft", Does::means, Value::one, "--head", "hf:"},
    {"-md", Does::means, Value::one, "--head"},
    {"-sys,--system-prompt", Does::means, Value::one, "--system"},
    {"-np", Does::means, Value::one, "--parallel"},
    {"-dev", Does::means, Value::one, "--device"},
    {"-ctk,--cache-type-k,-ctv,--cache-type-v", Does::means, Value::one, "--kv"},
    {"--n-predict", Does::means, Value::one, "--predict"},
    {"-r,--reverse-prompt", Does::means, Value::one, "--stop"},
    {"--chat-template-file", Does::means, Value::one, "--template"},
    {"-st,--single-turn", Does::means_here, Value::none, "--single-turn"},
    {"-cnv,--conversation", Does::means_here, Value::none, "--chat"},
    {"-no-cnv,--no-conversation", Does::nothing, Value::none},
    {"-ngl,--gpu-layers,--n-gpu-layers", Does::layers, Value::one},
    {"-ngld,--gpu-layers-draft,--n-gpu-layers-draft", Does::nothing, Value::one},
    {"-cb,--cont-batching,-nocb,--no-cont-batching,-nkvo,--no-kv-offload,-cmoe,--cpu-moe,-mli,"
     "--multiline-input,--log-disable,--no-context-shift,--perf,--no-perf,--swa-full,--no-escape,"
     "-kvu,--kv-unified,-no-kvu,--no-kv-unified,--metrics,--slots,--no-slots,--props",
     Does::nothing, Value::none},
    {"-co,--color,-fit,--fit", Does::nothing, Value::on_or_off},
    {"-ncmoe,--n-cpu-moe,-cd,--ctx-size-draft,-to,--timeout,-lv,--verbosity,--keep,--prio,"
     "--prio-batch,--poll,--threads-http,-cram,--cache-ram",
     Does::nothing, Value::number},
    {"-devd,--device-draft,--numa", Does::nothing, Value::one},
    {"-ot,--override-tensor", Does::refused, Value::one, kOneDevice},
    {"-sp,--special", Does::refused, Value::none,
     "special tokens are no part of the text; --json lists all ids"},
    {"-e,--escape", Does::refused, Value::none,
     "a prompt is taken as it is: write line breaks as such, or give it with -f FILE"},
    {"--rope-scaling,--rope-freq-base,--rope-freq-scale,--yarn-orig-ctx", Does::refused, Value::one,
     "RoPE is scaled as the model's files say"},
    {"--samplers,--sampling-seq", Does::refused, Value::one, "the order of samplers is fixed"},
    {"--reasoning-budget", Does::refused, Value::one, "thoughts are not cut; -n limits an answer"},
    {"-hff,--hf-file", Does::refused, Value::one,
     "name the quantisation, -hf ORG/NAME:Q4_K_M, or give the address of the file to -hf"},
    {"--chat-template", Does::refused, Value::one,
     "the model's own template is used; another one is a file: --template FILE"},
    {"--temp,--temperature,--top-k,--top-p,--min-p,--repeat-penalty,--frequency-penalty,"
     "--presence-penalty,-s,--seed",
     Does::refused, Value::one,
     "this command chooses no tokens; of `aerie serve` each request asks for its sampling"},
    {"-fa,--flash-attn", Does::nothing, Value::on_or_off},
    {"--jinja,--mlock,--no-mmap,--no-warmup,--no-display-prompt,--simple-io,-v,--verbose",
     Does::nothing, Value::none},
    {"-b,--batch-size,-ub,--ubatch-size,-tb,--threads-batch", Does::nothing, Value::number},
    {"-mg,--main-gpu,-sm,--split-mode", Does::one_device, Value::one, kOneDevice},
    {"-ts,--tensor-split", Does::refused, Value::one, kOneDevice},
    {"--grammar,--grammar-file,-j,--json-schema,-jf,--json-schema-file", Does::refused, Value::one,
     kNoGrammar},
    {"-mm,--mmproj,--image", Does::refused, Value::one, kNoImages},
    {"--lora,--lora-scaled", Does::refused, Value::one, kNoAdapters},
    {"--draft-max,--draft-min,--draft-n,--draft-n-min,--draft-p-min", Does::refused, Value::one,
     kTree},
    {"--mirostat,--dry-multiplier,--xtc-probability,--dynatemp-range", Does::sampler, Value::one,
     kNoSampler},
    {"--typical", Does::sampler, Value::one, kNoSampler, "", 1},
    {"--top-nsigma", Does::sampler, Value::one, kNoSampler, "", -1},
    {"-l,--logit-bias", Does::refused, Value::one,
     "a request of `aerie serve` has logit_bias; this command has not"},
    {"-sysf,--system-prompt-file", Does::refused, Value::one,
     "where a system message can be given, give its text: --system \"$(cat FILE)\""},
    {"-hft,--hf-token", Does::refused, Value::one,
     "other programs see a command's arguments: set the variable HF_TOKEN"},
    {"--api-key-file", Does::refused, Value::one, "set the variable AERIE_API_KEY"},
    {"--log-file", Does::refused, Value::one, "notes and logs go to stderr: 2> FILE"},
    {"--repeat-last-n", Does::refused, Value::one, "penalties look at the whole text"},
    {"-mu,--model-url", Does::refused, Value::one,
     "-hf takes the address of a file on Hugging Face; others are downloaded, and named with -m"},
};

bool is_among(std::string_view name, std::string_view names) {
    while (!names.empty()) {
        const size_t comma = names.find(',');
        if (names.substr(0, comma) == name) return true;
        names.remove_prefix(comma == names.npos ? names.size() : comma + 1);
    }
    return false;
}

}  // namespace

std::span<const PeerFlag> peer_flags() {
    return kPeerFlags;
}

const PeerFlag* peer_flag(std::string_view name) {
    for (const PeerFlag& flag : kPeerFlags)
        if (is_among(name, flag.names)) return &flag;
    return nullptr;
}

}  // namespace aerie
