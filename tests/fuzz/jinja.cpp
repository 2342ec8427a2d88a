// Fuzzes chat templates: parses them, and renders them with a conversation that has tool calls and
// tools. The output must be UTF-8, and the origin of every byte must be known.
#include "jinja/jinja.h"

#include "core/utf8.h"
#include "fuzz.h"

namespace {

using namespace aerie;
using jinja::Variable;

const Variable::Object& variables() {
    static const Variable::Object all = {
        {"messages", Variable(Json::parse(R"([{"role":"system","content":" S\n"},
            {"role":"user","content":"Hi <b>\u00e9</b>"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"abcDEF123","type":"function",
             "function":{"name":"f","arguments":{"a":1,"b":[2.5,true,null,"x"]}}}]},
            {"role":"tool","name":"f","tool_call_id":"abcDEF123","content":"{}"},
            {"role":"assistant","content":"<think>\n1\n</think>\n2"},
            {"role":"user","content":"?"}])",
                                          "messages"),
                              1)},
        {"tools",
         Variable(Json::parse(R"([{"type":"function","function":{"name":"f"}}])", "tools"), 2)},
        {"add_generation_prompt", Variable(Json(true), jinja::kTemplate)},
        {"bos_token", Variable(Json("<s>"), jinja::kTemplate)},
        {"eos_token", Variable(Json("</s>"), jinja::kTemplate)}};
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::tm now = {};
    return fuzz::run([&] {
        const auto chat = jinja::Template::parse(fuzz::text(data, size), "fuzz");
        const jinja::Rendered rendered = chat.render(variables(), now);
        size_t covered = 0;
        for (const jinja::Run& run : rendered.runs) covered += run.bytes;
        if (!is_utf8(rendered.text) || covered != rendered.text.size()) std::abort();
    });
}
