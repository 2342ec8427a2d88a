#include "serve/requests/other_members.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "core/utf8.h"
#include "serve/requests/problem.h"

namespace aerie {

namespace {

// A member that changes an answer, and as JSON its value that does not; empty: there is none.
struct ChangingMember {
    const char* name;
    std::string_view neutral;
};

// The constraints of an answer's form, by the names of OpenAI, llama.cpp, vLLM and Ollama.
constexpr ChangingMember kForms[] = {
    {"grammar", R"("")"},   {"json_schema", "{}"}, {"structured_outputs", ""},
    {"guided_json", ""},    {"guided_regex", ""},  {"guided_choice", ""},
    {"guided_grammar", ""}, {"format", R"("")"},   {"guided_decoding", ""},
    {"regex", R"("")"},     {"ebnf", R"("")"},     {"structural_tag", ""}};

// Other ways to choose tokens, and other inputs and outputs.
constexpr ChangingMember kWays[] = {{"mirostat", "0"},
                                    {"mirostat_mode", "0"},
                                    {"typical_p", "1"},
                                    {"tfs_z", "1"},
                                    {"top_a", "0"},
                                    {"xtc_probability", "0"},
                                    {"dry_multiplier", "0"},
                                    {"dynatemp_range", "0"},
                                    {"smoothing_factor", "0"},
                                    {"epsilon_cutoff", "0"},
                                    {"eta_cutoff", "0"},
                                    {"no_repeat_ngram_size", "0"},
                                    {"length_penalty", "1"},
                                    {"use_beam_search", "false"},
                                    {"min_tokens", "0"},
                                    {"bad_words", "[]"},
                                    {"bad_words_ids", "[]"},
                                    {"banned_strings", "[]"},
                                    {"allowed_token_ids", "[]"},
                                    {"stop_token_ids", "[]"},
                                    {"include_stop_str_in_output", "false"},
                                    {"skip_special_tokens", "true"},
                                    {"prompt_logprobs", "0"},
                                    {"truncate_prompt_tokens", ""},
                                    {"n_probs", "0"},
                                    {"lora", "[]"},
                                    {"documents", "[]"},
                                    {"chat_template", ""},
                                    {"audio", ""},
                                    {"images", "[]"},
                                    {"web_search_options", ""}};

void check(RequestFields& fields, std::span<const ChangingMember> members) {
    for (const ChangingMember& member : members) fields.only(member.name, member.neutral);
}

// Takes a member that is about tools. Its values that ask for none are given as JSON.
void take_no_tools(RequestFields& fields, const char* name,
                   std::initializer_list<std::string_view> neutral) {
    const Json* given = fields.take(name);
    if (given && std::find(neutral.begin(), neutral.end(), given->dump()) == neutral.end())
        throw no_tools(fields.path(name));
}

// The only response format is text.
void check_format(const Json* format) {
    if (!format) return;
    RequestFields fields(*format, "response_format");
    const std::string type = fields.text("type").value_or("");
    if (type != "text")
        throw not_supported(
            "response_format: only {\"type\":\"text\"} is supported, not " + in_quotes(type),
            "response_format");
}

}  // namespace

Problem no_tools(const std::string& param) {
    return not_supported("tools are not supported yet", param);
}

void check_other_members(RequestFields& fields) {
    // "auto" leaves the choice among no tools to the model.
    take_no_tools(fields, "tools", {"[]"});
    take_no_tools(fields, "tool_choice", {R"("none")", R"("auto")"});
    take_no_tools(fields, "functions", {"[]"});
    take_no_tools(fields, "function_call", {R"("none")", R"("auto")"});
    check_format(fields.take("response_format"));
    fields.only("modalities", R"(["text"])");
    check(fields, kForms);
    check(fields, kWays);
    // Members that OpenAI's clients send and that change no answer: nobody needs to hear of them.
    fields.ignore({"user", "metadata", "safety_identifier", "prompt_cache_retention",
                   "service_tier", "store", "parallel_tool_calls"});
}

}  // namespace aerie
