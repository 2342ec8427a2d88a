// transformers writes quantization_config; MLX, ModelOpt and the first tools for AWQ and GPTQ use
// keys and files of their own.
#include "io/foreign_weights.h"

#include <string_view>

#include "core/utf8.h"

namespace aerie {

namespace {

const Json* member(const Json& json, const char* key) {
    const Json* found = json.find(key);
    return found && !found->is_null() ? found : nullptr;
}

bool is_true(const Json* flag) {
    return flag && flag->boolean() && *flag->boolean();
}

// The usual spelling of a method; an unknown one is quoted as it is.
std::string written(const std::string& method) {
    constexpr std::pair<std::string_view, const char*> kMethods[] = {
        {"awq", "AWQ"},
        {"gptq", "GPTQ"},
        {"fp8", "FP8"},
        {"fbgemm_fp8", "FP8"},
        {"mxfp4", "MXFP4"},
        {"nvfp4", "NVFP4"},
        {"modelopt", "ModelOpt"},
        {"aqlm", "AQLM"},
        {"hqq", "HQQ"},
        {"exl2", "EXL2"},
        {"exl3", "EXL3"},
        {"eetq", "EETQ"},
        {"compressed-tensors", "compressed-tensors"},
        {"bitsandbytes", "bitsandbytes"},
        {"vptq", "VPTQ"},
        {"spqr", "SpQR"},
        {"bitnet", "BitNet"}};
    for (const auto& [name, word] : kMethods)
        if (method == name) return word;
    return in_quotes(method);
}

std::optional<std::string> method_of(const Json& quantisation) {
    if (!quantisation.object() || quantisation.object()->empty()) return std::nullopt;
    for (const char* key : {"quant_method", "quant_algo", "quant_type"})
        if (const Json* method = member(quantisation, key); method && method->string())
            return written(*method->string());
    for (const char* key : {"load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit"})
        if (is_true(member(quantisation, key))) return "bitsandbytes";
    if (const Json* inner = member(quantisation, "quantization"))  // ModelOpt nests it.
        return method_of(*inner);
    return "a method that it does not name";
}

}  // namespace

std::optional<std::string> foreign_quantisation(const Json& config) {
    for (const char* key : {"quantization_config", "compression_config"})
        if (const Json* quantisation = member(config, key))
            if (const auto method = method_of(*quantisation)) return method;
    // MLX writes its bits and group size under a key that nobody else uses.
    if (const Json* quantisation = member(config, "quantization"))
        if (member(*quantisation, "bits") || member(*quantisation, "group_size")) return "MLX";
    for (const char* key : {"text_config", "transformer_layer_config"})
        if (const Json* inner = member(config, key))
            if (const auto method = foreign_quantisation(*inner)) return method;
    return std::nullopt;
}

std::optional<std::string> foreign_quantisation(const std::filesystem::path& folder) {
    constexpr std::pair<const char*, const char*> kFiles[] = {{"quant_config.json", "AWQ"},
                                                              {"quantize_config.json", "GPTQ"},
                                                              {"hf_quant_config.json", "ModelOpt"}};
    for (const auto& [file, method] : kFiles)
        if (is_in_folder(folder, file)) return method;
    return std::nullopt;
}

}  // namespace aerie
