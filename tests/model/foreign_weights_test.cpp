// Checkpoints that other programs quantised are refused by the method's name, and errors about GGUF
// files name the files' keys.
#include "io/foreign_weights.h"

#include <gtest/gtest.h>

#include "io/damage.h"
#include "io/write_gguf.h"
#include "model/config.h"

namespace aerie::test {
namespace {

std::string refusal(const TestFolder& folder, const std::string& config) {
    folder.write("m/config.json", config);
    folder.write("m/model.safetensors", little_endian(2, 8) + "{}");
    return error_of([&] { open_model(folder.path() / "m"); });
}

TEST(ForeignWeights, AreNamedByTheirMethod) {
    const TestFolder folder;
    for (const auto& [member, method] : std::vector<std::pair<std::string, std::string>>{
             {R"("quantization_config":{"quant_method":"awq","bits":4})", "AWQ"},
             {R"("quantization_config":{"quant_method":"gptq","bits":4})", "GPTQ"},
             {R"("quantization_config":{"quant_method":"fp8"})", "FP8"},
             {R"("quantization_config":{"quant_method":"bitsandbytes"})", "bitsandbytes"},
             {R"("quantization_config":{"load_in_4bit":true})", "bitsandbytes"},
             {R"("quantization_config":{"quant_method":"compressed-tensors"})",
              "compressed-tensors"},
             {R"("compression_config":{"quant_method":"compressed-tensors"})",
              "compressed-tensors"},
             {R"("quantization_config":{"quant_method":"mxfp4"})", "MXFP4"},
             {R"("quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"})",
              "ModelOpt"},
             {R"("quantization_config":{"quant_method":"turbo"})", "'turbo'"},
             {R"("quantization_config":{"bits":3})", "a method that it does not name"},
             {R"("quantization":{"group_size":64,"bits":4})", "MLX"},
             {R"("text_config":{"quantization_config":{"quant_method":"fp8"}})", "FP8"}}) {
        const std::string message = refusal(folder, R"({"model_type":"llama",)" + member + "}");
        EXPECT_NE(message.find("config.json: the weights of this 'llama' model are quantised by " +
                               method + ", which aerie does not read; take the unquantised model"),
                  message.npos)
            << member << ": " << message;
    }
    for (const char* none : {"null", "{}", "[]"})
        EXPECT_EQ(refusal(folder, std::string(R"({"quantization_config":)") + none + "}"), "");
}

TEST(ForeignWeights, AreNamedByTheFilesBesideThem) {
    for (const auto& [file, method] : {std::pair("quant_config.json", "AWQ"),
                                       {"quantize_config.json", "GPTQ"},
                                       {"hf_quant_config.json", "ModelOpt"}}) {
        const TestFolder folder;
        folder.write(std::string("m/") + file, "{}");
        const std::string message = refusal(folder, R"({"model_type":"llama"})");
        EXPECT_NE(message.find(std::string("quantised by ") + method), message.npos) << message;
    }
}

// The error of a llama with heads of 16 and these keys; UINT32_MAX leaves a key out.
std::string gguf_refusal(const std::map<std::string, uint32_t>& numbers) {
    const TestFolder folder;
    std::map<std::string, uint32_t> keys = {
        {"block_count", 2},          {"embedding_length", 64},    {"context_length", 128},
        {"attention.head_count", 4}, {"feed_forward_length", 96}, {"attention.head_count_kv", 2}};
    for (const auto& [key, value] : numbers) keys[key] = value;
    GgufWriter file;
    file.string("general.architecture", "llama");
    for (const auto& [key, value] : keys)
        if (value != UINT32_MAX) file.u32("llama." + key, value);
    file.number("llama.attention.layer_norm_rms_epsilon", 6, 0x3727c5ac, 4);
    file.tensor({.name = "token_embd.weight", .dims = {32, 64}, .data = std::string(8192, '\0')});
    return error_of([&] {
        const ModelConfig config = target_config(open_model(folder.write("m.gguf", file.file())));
        EXPECT_EQ(config.context_is_assumed, keys.at("context_length") == UINT32_MAX);
    });
}

TEST(GgufErrors, NameKeysOfTheFile) {
    const std::pair<std::map<std::string, uint32_t>, const char*> cases[] = {
        {{{"attention.sliding_window", 1u << 30}}, "'llama.attention.sliding_window' must be"},
        {{{"attention.head_count_kv", 3}},
         "'llama.attention.head_count' must be a multiple of 'llama.attention.head_count_kv'"},
        {{{"context_length", 1}}, "'llama.context_length' must be"},
        {{{"feed_forward_length", 0}}, "'llama.feed_forward_length' must be"},
        {{{"block_count", 5000}}, "'llama.block_count' must be"},
        {{{"embedding_length", 8}, {"attention.key_length", 16}}, "'llama.embedding_length' must"}};
    for (const auto& [numbers, what] : cases) {
        const std::string message = gguf_refusal(numbers);
        EXPECT_NE(message.find(what), message.npos) << message;
        for (const char* ours : {"sliding_window'", "num_", "hidden_size", "max_position"})
            EXPECT_TRUE(message.find(ours) == message.npos ||
                        message.find(ours) > message.find("llama."))
                << message;
    }
    EXPECT_EQ(gguf_refusal({}), "");
    EXPECT_EQ(gguf_refusal({{"attention.sliding_window", 0}}), "");
    EXPECT_EQ(gguf_refusal({{"context_length", UINT32_MAX}}), "");
}

}  // namespace
}  // namespace aerie::test
