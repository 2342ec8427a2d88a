// Names are looked at first: the authors chose them. Keys and tensors decide where kinds share one.
#include "io/foreign_drafters.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {

namespace {

// Lower-case letters and digits of a name, which are all that is compared.
std::string folded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c >= 'A' && c <= 'Z') out += char(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
    }
    return out;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

struct Mark {
    std::string_view part;
    const char* kind;
};
// Parts of the folded names of classes, types and architectures; the first match counts.
constexpr Mark kNames[] = {{"eagle4", "an EAGLE-4 drafter"},
                           {"peagle", "a P-EAGLE drafter"},
                           {"paralleleagle", "a P-EAGLE drafter"},
                           {"dflash2", "a DFlash2 drafter"},
                           {"dspark", "a DSpark drafter"},
                           {"domino", "a Domino drafter"},
                           {"jetspec", "a JetSpec drafter"},
                           {"dflash", "a DFlash drafter"},
                           {"mlpspeculator", "an MLP speculator"},
                           {"redrafter", "a ReDrafter head"},
                           {"4assistant", "an MTP drafter"},  // Gemma 4's
                           {"mtp", "an MTP drafter"},
                           {"nextn", "an MTP drafter"}};
// Parts of tensor names that only one kind has.
constexpr Mark kTensors[] = {{"efficient_lm_head", "an EAGLE-4 drafter"},
                             {"mask_hidden", "a P-EAGLE drafter"},
                             {"candidate_selector.", "a DFlash2 drafter"},
                             {"attention_conv.base_kernel", "a DFlash2 drafter"},
                             {"selector_predecessor", "a DFlash2 drafter"},
                             {"attn_conv_base", "a DFlash2 drafter"},
                             {"markov_w1", "a DSpark drafter"}};
// Parts of the names of MTP layers inside a model.
constexpr std::string_view kMtpLayers[] = {"mtp.fc.", "mtp.layers.", "mtp_layers.", ".nextn."};

template <size_t N>
const char* find_mark(const Mark (&marks)[N], std::string_view name) {
    for (const Mark& mark : marks)
        if (contains(name, mark.part)) return mark.kind;
    return nullptr;
}

// The member of an object, where it is there and not null.
const Json* member(const Json* json, const char* key) {
    const Json* found = json ? json->find(key) : nullptr;
    return found && !found->is_null() ? found : nullptr;
}

std::string text_of(const Json* value) {
    return value && value->string() ? *value->string() : "";
}

// The names that a configuration gives its model.
std::vector<std::string> names_in(const Json& config) {
    std::vector<std::string> names = {folded(text_of(member(&config, "speculators_model_type")))};
    if (const Json* classes = member(&config, "architectures"); classes && classes->array())
        for (const Json& name : *classes->array()) names.push_back(folded(text_of(&name)));
    names.push_back(folded(text_of(member(&config, "model_type"))));
    return names;
}

const char* named_kind(const std::vector<std::string>& names) {
    for (const std::string& name : names)
        if (const char* kind = find_mark(kNames, name)) return kind;
    return nullptr;
}

bool is_named(const std::vector<std::string>& names, std::string_view part) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return contains(name, part); });
}

// DFlash and its derivatives share a class; DeepSpec's DSpark without a Markov head is DFlash.
std::string kind_of_block(const Json& config, const std::string& named) {
    const Json* inner = member(&config, "dflash_config");
    const auto find = [&](const char* key) {
        const Json* own = member(inner, key);
        return own ? own : member(&config, key);
    };
    const std::string projector = text_of(find("projector_type"));
    if (const char* kind = find_mark(kNames, folded(projector))) return kind;
    if (find("selector_rank") || find("conv_kernel_size")) return "a DFlash2 drafter";
    const Json* rank = find("markov_rank");
    const bool has_markov = rank ? rank->number() > 0 : contains(named, "DSpark");
    if (!has_markov)
        return contains(named, "DSpark") ? "a DFlash drafter that samples from its anchor" : named;
    const std::string head = text_of(find("markov_head_type"));
    if (head == "gated") return "a DSpark drafter with a gated Markov head";
    if (head == "rnn") return "a DSpark drafter with a recurrent Markov head";
    return "a DSpark drafter";
}

bool is_eagle(const Json& config, const std::vector<std::string>& names) {
    return is_named(names, "eagle3") || member(&config, "draft_vocab_size") ||
           member(&config, "eagle_config");
}

}  // namespace

std::optional<std::string> foreign_drafter(const Json& config) {
    if (!config.object()) return std::nullopt;
    const std::vector<std::string> names = names_in(config);
    const char* named = named_kind(names);
    if (named && (contains(named, "DFlash drafter") || contains(named, "DSpark")))
        return kind_of_block(config, named);
    if (named) return named;
    if (member(&config, "dflash_config") && !is_named(names, "eagle"))
        return kind_of_block(config, "a DFlash drafter");
    // In vLLM, P-EAGLE has the class of EAGLE-3; its mask token identifies it.
    if (is_eagle(config, names) &&
        (member(&config, "pard_token") || member(&config, "ptd_token_id")))
        return "a P-EAGLE drafter";
    const std::string& speculators = names.front();
    if (!speculators.empty() && speculators != "eagle" && speculators != "eagle3")
        return "a drafter of the kind " +
               in_quotes(text_of(member(&config, "speculators_model_type")));
    return std::nullopt;
}

std::optional<std::string> foreign_drafter(const Checkpoint& tensors) {
    for (const auto& [name, tensor] : tensors.tensors())
        if (const char* kind = find_mark(kTensors, name)) return kind;
    return std::nullopt;
}

std::optional<std::string> foreign_drafter(const Gguf& gguf) {
    const std::string architecture(gguf.metadata().string("general.architecture"));
    const char* named = find_mark(kNames, folded(architecture));
    for (const GgufTensor& tensor : gguf.tensors())
        if (const char* kind = find_mark(kTensors, tensor.name)) return kind;
    if (named && gguf.metadata().find(architecture + ".conv_kernel_size"))
        return "a DFlash2 drafter";
    return named ? std::optional<std::string>(named) : std::nullopt;
}

namespace {

bool is_mtp_layer(const std::string& name) {
    return std::any_of(std::begin(kMtpLayers), std::end(kMtpLayers), [&](std::string_view part) {
        return name.starts_with(part) || (part.front() == '.' && contains(name, part));
    });
}

}  // namespace

bool has_mtp_layers(const Checkpoint& tensors) {
    return std::any_of(tensors.tensors().begin(), tensors.tensors().end(),
                       [](const auto& entry) { return is_mtp_layer(entry.first); });
}

bool has_mtp_layers(const Gguf& gguf) {
    return std::any_of(gguf.tensors().begin(), gguf.tensors().end(),
                       [](const GgufTensor& tensor) { return is_mtp_layer(tensor.name); });
}

void refuse_foreign(const std::filesystem::path& path, const std::optional<std::string>& kind) {
    if (kind)
        throw Error(path.string() + ": " + *kind +
                        ", which aerie does not run; name another head, or none and --draft lookup",
                    Cause::unsupported);
}

}  // namespace aerie
