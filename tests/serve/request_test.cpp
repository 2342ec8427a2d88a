// Requests as clients write them, and the parts of them that are refused.
#include "serve/requests/request.h"

#include <gtest/gtest.h>

#include "serve/requests/problem.h"

namespace aerie {
namespace {

std::string chat_with(const std::string& members) {
    const std::string comma = members.empty() ? "" : ",";
    return R"({"messages":[{"role":"user","content":"hi"}])" + comma + members + "}";
}

std::string prompt_with(const std::string& members) {
    const std::string comma = members.empty() ? "" : ",";
    return R"({"prompt":"hi")" + comma + members + "}";
}

struct Refused {
    int status = 0;
    std::string param, code, message;
};

template <typename Parse>
Refused refusal(const Parse& parse, const std::string& json) {
    try {
        parse(json);
    } catch (const Problem& problem) {
        EXPECT_EQ(std::string(problem.what()).find('\n'), std::string::npos);
        return {problem.status, problem.param, problem.code, problem.what()};
    }
    return {};
}

TEST(ChatRequest, DefaultsAreOpenAis) {
    const CompletionRequest request = parse_chat_request(chat_with(""));
    EXPECT_TRUE(request.is_chat);
    EXPECT_EQ(request.choices, 1);
    EXPECT_FALSE(request.seed || request.max_tokens || request.temperature || request.top_k);
    EXPECT_FALSE(request.stream || request.with_logprobs || request.provenance || request.join);
    EXPECT_TRUE(request.drafts && !request.ignores_eos);
    EXPECT_EQ(request.messages.dump(), R"([{"role":"user","content":"hi"}])");
}

TEST(ChatRequest, ReadsEveryOption) {
    const CompletionRequest request = parse_chat_request(chat_with(
        R"("model":"m","n":3,"seed":7,"max_completion_tokens":9,"temperature":0.5,"top_p":0.25,)"
        R"("top_k":4,"min_p":0.125,"repetition_penalty":1.5,"frequency_penalty":-2,)"
        R"("presence_penalty":2,"stop":["a","b"],"logit_bias":{"5":-100,"6":1.5},"logprobs":true,)"
        R"("top_logprobs":20,"stream":true,"stream_options":{"include_usage":true},"draft":false,)"
        R"("provenance":true,"join":true,"ignore_eos":true,"user":"u",)"
        R"("response_format":{"type":"text"},)"
        R"("tool_choice":"none","modalities":["text"],"store":false)"));
    EXPECT_EQ(request.model, "m");
    EXPECT_EQ(request.choices, 3);
    EXPECT_EQ(request.seed, 7u);
    EXPECT_EQ(request.max_tokens, 9);
    EXPECT_EQ(request.temperature, 0.5f);
    EXPECT_EQ(request.top_p, 0.25f);
    EXPECT_EQ(request.top_k, 4);
    EXPECT_EQ(request.min_p, 0.125f);
    EXPECT_EQ(request.repetition_penalty, 1.5f);
    EXPECT_EQ(request.frequency_penalty, -2);
    EXPECT_EQ(request.presence_penalty, 2);
    EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(request.logit_bias, (std::vector<std::pair<int, float>>{{5, -100}, {6, 1.5f}}));
    EXPECT_TRUE(request.with_logprobs && request.stream && request.include_usage);
    EXPECT_TRUE(request.provenance && request.join && !request.drafts && request.ignores_eos);
    EXPECT_EQ(request.alternatives, 20);
}

TEST(ChatRequest, NullIsAbsent) {
    const CompletionRequest request = parse_chat_request(
        chat_with(R"("seed":null,"stop":null,"tools":null,"temperature":null,"whatever":null)"));
    EXPECT_FALSE(request.seed || request.temperature);
    EXPECT_TRUE(request.stops.empty());
}

TEST(Requests, SeedsAreWholeNumbersOf64Bits) {
    const std::pair<const char*, uint64_t> cases[] = {{"0", 0},
                                                      {"9223372036854775807", INT64_MAX},
                                                      {"-9223372036854775808", 1ull << 63},
                                                      {"-7", UINT64_MAX - 6},
                                                      {"-2.0", UINT64_MAX - 1},
                                                      {"3e2", 300}};
    for (const auto& [seed, want] : cases) {
        EXPECT_EQ(parse_chat_request(chat_with(std::string("\"seed\":") + seed)).seed, want)
            << seed;
        EXPECT_EQ(
            parse_completion_request(std::string(R"({"prompt":"a","seed":)") + seed + "}").seed,
            want)
            << seed;
    }
}

// Other servers and their front ends write "no limit", "random" and "off" like this.
TEST(Requests, ZeroAndMinusOneAskForNoLimit) {
    for (const char* most : {"\"max_tokens\":-1", "\"max_tokens\":0", "\"n_predict\":-1",
                             "\"max_completion_tokens\":-1"})
        EXPECT_EQ(parse_chat_request(chat_with(most)).max_tokens, -1) << most;
    EXPECT_EQ(parse_completion_request(prompt_with("\"max_tokens\":-1")).max_tokens, -1);
    EXPECT_EQ(parse_completion_request(prompt_with("\"n_predict\":7")).max_tokens, 7);
    EXPECT_EQ(parse_completion_request(prompt_with("\"max_tokens\":0,\"echo\":true")).max_tokens,
              0);
    EXPECT_FALSE(parse_chat_request(chat_with("\"seed\":-1")).seed);
    EXPECT_EQ(parse_chat_request(chat_with("\"top_k\":-1")).top_k, 0);
}

TEST(Requests, LimitsOfAnswersHaveThreeNames) {
    EXPECT_EQ(parse_completion_request(prompt_with("\"max_completion_tokens\":2")).max_tokens, 2);
    EXPECT_THROW(parse_completion_request(prompt_with("\"max_completion_tokens\":\"x\"")), Problem);
}

TEST(ChatRequest, WrongTypesAreToldFromWrongValues) {
    for (const char* bad :
         {R"("max_tokens":"x")", R"("temperature":[])", R"("n":true)", R"("stop":5)"})
        EXPECT_EQ(refusal(parse_chat_request, chat_with(bad)).code, "invalid_type") << bad;
    for (const char* bad :
         {R"("max_tokens":-2)", R"("temperature":3)", R"("n":1.5)", R"("stop":"")"})
        EXPECT_EQ(refusal(parse_chat_request, chat_with(bad)).code, "invalid_value") << bad;
    EXPECT_EQ(refusal(parse_chat_request, R"({"messages":"x"})").code, "invalid_type");
}

TEST(ChatRequest, WaysToChooseThatAreNotThereAreRefused) {
    for (const char* bad :
         {R"("no_repeat_ngram_size":2)", R"("bad_words_ids":[[1]])", R"("regex":"a")",
          R"("guided_decoding":{"regex":"a"})", R"("add_generation_prompt":false)",
          R"("continue_final_message":true)", R"("continue_final_message":true)",
          R"("epsilon_cutoff":0.1)", R"("truncate_prompt_tokens":5)"})
        EXPECT_EQ(refusal(parse_chat_request, chat_with(bad)).code, "unsupported_parameter") << bad;
    for (const char* neutral : {R"("no_repeat_ngram_size":0)", R"("banned_strings":[])",
                                R"("add_generation_prompt":true)", R"("repeat_last_n":64)"})
        EXPECT_NO_THROW(parse_chat_request(chat_with(neutral))) << neutral;
}

// vLLM's way to ask for what happens here anyway.
TEST(ChatRequest, AnAnswerGoesOnWhereTheAssistantSpokeLast) {
    EXPECT_NO_THROW(parse_chat_request(
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],)"
        R"("add_generation_prompt":false,"continue_final_message":true})"));
    EXPECT_NO_THROW(parse_chat_request(
        chat_with(R"("add_generation_prompt":true,"continue_final_message":false)")));
}

TEST(ChatRequest, JoinIsAskedForOrNamesAConversation) {
    const auto read = [](const std::string& join) {
        return parse_chat_request(chat_with("\"join\":" + join));
    };
    EXPECT_FALSE(read("false").join || read("null").join);
    EXPECT_TRUE(read("true").join && read("true").joined.empty());
    EXPECT_TRUE(read("\"abc\"").join);
    EXPECT_EQ(read("\"abc\"").joined, "abc");
    for (const char* bad : {"1", "[]", "{}", "[\"abc\"]"}) EXPECT_THROW(read(bad), Problem) << bad;
}

TEST(Requests, CacheKeysAreKept) {
    EXPECT_EQ(parse_chat_request(chat_with(R"("prompt_cache_key":"k")")).cache_key, "k");
    EXPECT_EQ(parse_completion_request(R"({"prompt":"a","prompt_cache_key":"k"})").cache_key, "k");
    EXPECT_EQ(parse_completion_request(R"({"prompt":"a","prompt_cache_key":null})").cache_key, "");
    const std::string most(1024, 'k');
    EXPECT_EQ(parse_chat_request(chat_with("\"prompt_cache_key\":\"" + most + "\"")).cache_key,
              most);
    EXPECT_THROW(parse_chat_request(chat_with("\"prompt_cache_key\":\"" + most + "k\"")), Problem);
}

// Members that clients send beside a message that is already complete.
TEST(ChatRequest, HintsOfClientsAreTaken) {
    const auto messages = [](const std::string& message) {
        return parse_chat_request("{\"messages\":[" + message + "]}").messages.dump();
    };
    EXPECT_EQ(messages(R"({"role":"user","content":"a","name":"Ada"})"),
              R"([{"role":"user","content":"a"}])");
    const char* said = R"([{"role":"assistant","content":"a"}])";
    for (const char* more : {R"("annotations":[{}])", R"("tool_calls":[])", R"("tool_calls":null)",
                             R"("id":"msg_1","cache_control":{"type":"ephemeral"})",
                             R"("refusal":null,"audio":null,"function_call":null)"})
        EXPECT_EQ(messages(std::string(R"({"role":"assistant","content":"a",)") + more + "}"),
                  said);
    EXPECT_EQ(messages(R"({"role":"assistant","content":null,"tool_calls":[]})"),
              R"([{"role":"assistant","content":""}])");
    EXPECT_NO_THROW(parse_chat_request(chat_with(R"("tools":[])")));
    for (const char* bad : {R"({"role":"user","content":null})", R"({"role":"assistant"})",
                            R"({"role":"assistant","content":null,"tool_calls":[{"id":"x"}]})"})
        EXPECT_THROW(messages(bad), Problem) << bad;
    EXPECT_THROW(parse_chat_request(chat_with(R"("tools":[{"type":"function"}])")), Problem);
}

TEST(ChatRequest, ThoughtsOfAnAnswerReachTheTemplate) {
    EXPECT_EQ(parse_chat_request(R"({"messages":[{"role":"assistant","content":"a",)"
                                 R"("reasoning_content":"b"}]})")
                  .messages.dump(),
              R"([{"role":"assistant","content":"a","reasoning_content":"b"}])");
    EXPECT_EQ(parse_chat_request(chat_with(R"("chat_template_kwargs":{"enable_thinking":false})"))
                  .template_kwargs.dump(),
              R"({"enable_thinking":false})");
    std::string many = R"("chat_template_kwargs":{"a0":1)";
    for (int i = 1; i < 65; ++i) many += ",\"a" + std::to_string(i) + "\":1";
    for (const std::string& bad : {std::string(R"("chat_template_kwargs":5)"), many + "}"})
        EXPECT_EQ(refusal(parse_chat_request, chat_with(bad)).param, "chat_template_kwargs");
}

TEST(Requests, UnknownMembersAreReportedAndIgnored) {
    const CompletionRequest chat = parse_chat_request(
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}],)"
        R"("x":1}],"keep_alive":"5m","num_ctx":4096,"verbosity":"low","id_slot":0,)"
        R"("stream":true,"stream_options":{"include_obfuscation":true},"options":null})");
    EXPECT_EQ(chat.ignored,
              (std::vector<std::string>{"messages[0].content[0].cache_control", "messages[0].x",
                                        "stream_options.include_obfuscation", "keep_alive",
                                        "num_ctx", "verbosity", "id_slot"}));
    EXPECT_EQ(parse_completion_request(prompt_with(R"("think":true)")).ignored,
              std::vector<std::string>{"think"});
    EXPECT_EQ(parse_tokenize_request(R"({"content":"a","with_pieces":true})").ignored,
              std::vector<std::string>{"with_pieces"});
    std::string many = R"("a0":1)";
    for (int i = 1; i < 500; ++i) many += ",\"a" + std::to_string(i) + "\":1";
    EXPECT_EQ(parse_chat_request(chat_with(many)).ignored.size(), 100u);
}

TEST(Requests, HintsToOtherServersChangeNothing) {
    const std::string hints =
        R"("user":"u","metadata":{"a":"b"},"store":true,"service_tier":"auto",)"
        R"("parallel_tool_calls":true,"reasoning_effort":"high","cache_prompt":true,)"
        R"("safety_identifier":"s","prompt_cache_retention":"24h")";
    EXPECT_NO_THROW(parse_chat_request(chat_with(hints)));
    EXPECT_NO_THROW(parse_completion_request(prompt_with(hints)));
}

TEST(Requests, RepeatPenaltyIsTheRepetitionPenalty) {
    const std::string member = R"("repeat_penalty":1.25)";
    EXPECT_EQ(parse_chat_request(chat_with(member)).repetition_penalty, 1.25f);
    EXPECT_EQ(parse_completion_request(prompt_with(member)).repetition_penalty, 1.25f);
}

TEST(ChatRequest, WhatAsksForNoToolsIsTaken) {
    for (const char* members : {R"("tools":[])", R"("tool_choice":"none")", R"("functions":[])",
                                R"("tools":[],"tool_choice":"auto","function_call":"auto")",
                                R"("tools":[],"tool_choice":"none","function_call":"none")"})
        EXPECT_NO_THROW(parse_chat_request(chat_with(members))) << members;
    EXPECT_EQ(refusal(parse_chat_request, chat_with(R"("tools":[{"type":"function"}])")).message,
              "tools are not supported yet");
}

TEST(ChatRequest, RefusesAFormatByName) {
    EXPECT_EQ(refusal(parse_chat_request, chat_with(R"("response_format":{"type":"json_object"})"))
                  .message,
              "response_format: only {\"type\":\"text\"} is supported, not 'json_object'");
}

TEST(Requests, ABodyThatIsMissingIsTold) {
    EXPECT_EQ(refusal(parse_completion_request, "").message,
              "the request has no body: send JSON, with a Content-Length or in chunks");
}

TEST(Requests, AByteOrderMarkInFrontIsLeftOut) {
    const std::string mark = "\xEF\xBB\xBF";
    EXPECT_NO_THROW(parse_chat_request(mark + chat_with("")));
    EXPECT_EQ(std::get<std::string>(parse_completion_request(mark + prompt_with("")).prompts.at(0)),
              "hi");
    EXPECT_EQ(parse_tokenize_request(mark + R"({"content":"a"})").content, "a");
    EXPECT_EQ(refusal(parse_chat_request, mark + mark + chat_with("")).code, "invalid_json");
}

TEST(ChatRequest, PartsOfTextAreOneText) {
    const CompletionRequest request = parse_chat_request(
        R"({"messages":[{"role":"developer","content":[{"type":"text","text":"a"},)"
        R"({"type":"text","text":"b"}]},{"role":"user","content":"c"}]})");
    EXPECT_EQ(request.messages.dump(),
              R"([{"role":"system","content":"ab"},{"role":"user","content":"c"}])");
}

// The faulty member, and the name that the refusal gives.
using Case = std::pair<const char*, const char*>;

constexpr Case kBadOfBoth[] = {
    {R"("n":0)", "n"},
    {R"("n":9)", "n"},
    {R"("n":1.5)", "n"},
    {R"("n":"1")", "n"},
    {R"("n":99999999999999999999)", "n"},
    {R"("seed":9223372036854775808)", "seed"},
    {R"("seed":-9223372036854775809)", "seed"},
    {R"("seed":0.5)", "seed"},
    {R"("seed":-1.5)", "seed"},
    {R"("seed":1e19)", "seed"},
    {R"("seed":-1e19)", "seed"},
    {R"("seed":"1")", "seed"},
    {R"("prompt_cache_key":5)", "prompt_cache_key"},
    {R"("max_tokens":-5)", "max_tokens"},
    {R"("max_tokens":99999999)", "max_tokens"},
    {R"("temperature":2.01)", "temperature"},
    {R"("temperature":-0.1)", "temperature"},
    {R"("temperature":"hot")", "temperature"},
    {R"("temperature":1e999)", ""},
    {R"("top_p":1.1)", "top_p"},
    {R"("min_p":-1)", "min_p"},
    {R"("top_k":-2)", "top_k"},
    {R"("repetition_penalty":0)", "repetition_penalty"},
    {R"("repeat_penalty":101)", "repeat_penalty"},
    {R"("repeat_penalty":1.1,"repetition_penalty":1.1)", "repeat_penalty"},
    {R"("frequency_penalty":2.5)", "frequency_penalty"},
    {R"("presence_penalty":-3)", "presence_penalty"},
    {R"("stop":"")", "stop"},
    {R"("stop":[1])", "stop"},
    {R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", "stop"},
    {R"("logit_bias":[])", "logit_bias"},
    {R"("logit_bias":{"x":1})", "logit_bias"},
    {R"("logit_bias":{"-1":1})", "logit_bias"},
    {R"("logit_bias":{"1":101})", "logit_bias.1"},
    {R"("stream":1)", "stream"},
    {R"("stream_options":{"include_usage":true})", "stream_options"},
    {R"("draft":"no")", "draft"},
    {R"("model":5)", "model"},
    {R"("mirostat":2)", "mirostat"},
    {R"("min_tokens":5)", "min_tokens"},
    {R"("stop_token_ids":[1])", "stop_token_ids"},
    {R"("json_schema":{"type":"object"})", "json_schema"},
    {R"("grammar":"x")", "grammar"}};

TEST(Requests, BothKindsRefuseWhatIsOutOfRange) {
    for (const auto& [members, param] : kBadOfBoth) {
        const Refused chat = refusal(parse_chat_request, chat_with(members));
        const Refused text = refusal(parse_completion_request, prompt_with(members));
        EXPECT_EQ(chat.status, 400) << members;
        EXPECT_EQ(text.status, 400) << members;
        EXPECT_EQ(chat.param, param) << members;
        EXPECT_EQ(text.param, param) << members;
    }
}

TEST(ChatRequest, RefusesWhatIsNotImplemented) {
    constexpr Case kCases[] = {
        {R"("tools":[{}])", "tools"},
        {R"("functions":[{}])", "functions"},
        {R"("function_call":{"name":"x"})", "function_call"},
        {R"("tool_choice":"required")", "tool_choice"},
        {R"("tool_choice":{"type":"function","function":{"name":"x"}})", "tool_choice"},
        {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format"},
        {R"("response_format":{"type":"json_object"})", "response_format"},
        {R"("audio":{"voice":"x"})", "audio"},
        {R"("modalities":["text","audio"])", "modalities"},
        {R"("guided_json":{})", "guided_json"},
        {R"("chat_template":"x")", "chat_template"},
        {R"("web_search_options":{})", "web_search_options"}};
    for (const auto& [members, param] : kCases) {
        const Refused refused = refusal(parse_chat_request, chat_with(members));
        EXPECT_EQ(refused.status, 400) << members;
        EXPECT_EQ(refused.code, "unsupported_parameter") << members;
        EXPECT_EQ(refused.param, param) << members;
    }
}

TEST(ChatRequest, RefusesMessagesThatAreNone) {
    const Case cases[] = {
        {R"({})", "messages"},
        {R"({"messages":[]})", "messages"},
        {R"({"messages":"hi"})", "messages"},
        {R"({"messages":[1]})", "messages[0]"},
        {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
        {R"({"messages":[{"role":"tool","content":"x"}]})", "messages[0].role"},
        {R"({"messages":[{"role":"robot","content":"x"}]})", "messages[0].role"},
        {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})",
         "messages[0].content[0].type"},
        {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
         "messages[0].content[0].text"},
        {R"({"messages":[{"role":"assistant","content":"x","tool_calls":[{}]}]})",
         "messages[0].tool_calls"}};
    for (const auto& [json, param] : cases) {
        const Refused refused = refusal(parse_chat_request, json);
        EXPECT_EQ(refused.status, 400) << json;
        EXPECT_EQ(refused.param, param) << json;
    }
    EXPECT_EQ(refusal(parse_chat_request, chat_with(R"("top_logprobs":3)")).param, "top_logprobs");
    EXPECT_EQ(refusal(parse_chat_request, chat_with(R"("logprobs":true,"top_logprobs":21)")).param,
              "top_logprobs");
    EXPECT_EQ(
        refusal(parse_chat_request, chat_with(R"("max_tokens":1,"max_completion_tokens":2)")).param,
        "max_completion_tokens");
}

TEST(Requests, WhatIsNoObjectOrTooDeepIsRefused) {
    for (const std::string json : {"", "[]", "1", "{", "{\"a\":1,\"a\":2}", "nul"})
        EXPECT_EQ(refusal(parse_chat_request, json).status, 400) << json;
    const std::string deep = "{\"metadata\":" + std::string(64, '[') + std::string(64, ']') + "}";
    EXPECT_EQ(refusal(parse_chat_request, deep).code, "invalid_json");
    std::string many = "{\"metadata\":[1";
    for (int i = 0; i < 400'000; ++i) many += ",1";
    EXPECT_EQ(refusal(parse_chat_request, many + "]}").code, "invalid_json");
}

TEST(CompletionRequest, TakesTextOrIds) {
    EXPECT_EQ(std::get<std::string>(parse_completion_request(R"({"prompt":"x"})").prompts.at(0)),
              "x");
    const std::string marked = "\xEF\xBB\xBF{\"prompt\":\"x\"}";
    EXPECT_EQ(std::get<std::string>(parse_completion_request(marked).prompts.at(0)), "x");
    EXPECT_EQ(std::get<std::string>(parse_completion_request(R"({"prompt":["x"]})").prompts.at(0)),
              "x");
    const std::vector<int> ids = {1, 2};
    EXPECT_EQ(std::get<1>(parse_completion_request(R"({"prompt":[1,2]})").prompts.at(0)), ids);
    EXPECT_EQ(std::get<1>(parse_completion_request(R"({"prompt":[[1,2]]})").prompts.at(0)), ids);
    EXPECT_EQ(parse_completion_request(R"({"prompt":"x"})").max_tokens, 16);
    const CompletionRequest several = parse_completion_request(R"({"prompt":["a",[3,4],"b"]})");
    ASSERT_EQ(several.prompts.size(), 3u);
    EXPECT_EQ(std::get<0>(several.prompts[2]), "b");
    EXPECT_EQ(std::get<1>(several.prompts[1]), (std::vector<int>{3, 4}));
    const CompletionRequest gap = parse_completion_request(prompt_with(R"("suffix":"x")"));
    EXPECT_EQ(gap.suffix, "x");
    EXPECT_TRUE(parse_completion_request(prompt_with(R"("echo":true)")).echo);
    const CompletionRequest scored = parse_completion_request(R"({"prompt":"x","logprobs":0})");
    EXPECT_TRUE(scored.with_logprobs);
    EXPECT_EQ(scored.alternatives, 0);
}

TEST(CompletionRequest, RefusesOtherPrompts) {
    for (const char* prompt : {"5", "[]", "[[]]", "[[[1]]]", "[1,\"x\"]", "[-1]", "[1.5]",
                               "[4294967296]", "{}", "[\"a\",5]"}) {
        const auto json = "{\"prompt\":" + std::string(prompt) + "}";
        EXPECT_EQ(refusal(parse_completion_request, json).param, "prompt") << json;
    }
    EXPECT_EQ(refusal(parse_completion_request, prompt_with(R"("echo":true,"logprobs":1)")).param,
              "echo");
    std::string many = R"({"prompt":["a")";
    for (int i = 0; i < 64; ++i) many += ",\"a\"";
    EXPECT_EQ(refusal(parse_completion_request, many + "]}").param, "prompt");
    EXPECT_EQ(refusal(parse_completion_request, prompt_with(R"("best_of":2)")).param, "best_of");
    for (const char* prompt : {"[1]", R"(["a","b"])"})
        EXPECT_EQ(refusal(parse_completion_request,
                          "{\"prompt\":" + std::string(prompt) + ",\"suffix\":\"x\"}")
                      .param,
                  "suffix");
    EXPECT_EQ(refusal(parse_completion_request, prompt_with(R"("logprobs":21)")).param, "logprobs");
}

TEST(TokenizeRequest, WantsOneText) {
    EXPECT_EQ(parse_tokenize_request(R"({"content":"a"})").content, "a");
    EXPECT_TRUE(parse_tokenize_request(R"({"content":"","add_special":true})").from_start);
    EXPECT_EQ(refusal(parse_tokenize_request, "{}").param, "content");
    const std::string most(1 << 20, 'a');
    EXPECT_EQ(parse_tokenize_request("{\"content\":\"" + most + "\"}").content, most);
    EXPECT_EQ(refusal(parse_tokenize_request, "{\"content\":\"" + most + "a\"}").param, "content");
    EXPECT_EQ(refusal(parse_tokenize_request,
                      R"({"content":"a","messages":[{"role":"user","content":"b"}]})")
                  .param,
              "content");
}

TEST(Problem, IsOpenAisError) {
    EXPECT_EQ(Problem(429, "queue_full", "later").json(),
              R"({"error":{"message":"later","type":"rate_limit_error","param":null,)"
              R"("code":"queue_full"}})");
    EXPECT_EQ(bad_request("no", "n").json(),
              R"({"error":{"message":"no","type":"invalid_request_error","param":"n",)"
              R"("code":"invalid_value"}})");
}

}  // namespace
}  // namespace aerie
