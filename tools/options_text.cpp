// Flags about text: prompts and conversations, tokenize, render.
#include <chrono>

#include "help.h"
#include "option_checks.h"

namespace aerie {

namespace {

// "1,2,3": token ids.
std::vector<int> parse_ids(const std::string& flag, const std::string& text) {
    std::vector<int> ids;
    const char* at = text.data();
    const char* end = at + text.size();
    while (true) {
        int value = 0;
        const auto [rest, error] = std::from_chars(at, end, value);
        if (error != std::errc() || (rest != end && *rest != ',') || value < 0)
            refuse(flag, "token ids such as 1,2,3", text);
        ids.push_back(value);
        if (rest == end) return ids;
        at = rest + 1;
    }
}

// "2026-07-04T09:05:03".
std::tm parse_time(const std::string& text) {
    std::tm now{};
    char rest = 0;
    const int found =
        std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%c", &now.tm_year, &now.tm_mon,
                    &now.tm_mday, &now.tm_hour, &now.tm_min, &now.tm_sec, &rest);
    using namespace std::chrono;
    const year_month_day date{year(now.tm_year), month(unsigned(now.tm_mon)),
                              day(unsigned(now.tm_mday))};
    const bool fits = found == 6 && date.ok() && now.tm_hour >= 0 && now.tm_hour < 24 &&
                      now.tm_min >= 0 && now.tm_min < 60 && now.tm_sec >= 0 && now.tm_sec < 60;
    if (!fits) refuse("--now", "a time such as 2026-07-04T09:05:03", text);
    const sys_days today = date;
    now.tm_wday = int(weekday(today).c_encoding());
    now.tm_yday = int((today - sys_days(date.year() / January / 1)).count());
    now.tm_year -= 1900;
    now.tm_mon -= 1;
    return now;
}

}  // namespace

void add_prompt(CLI::App& app, std::optional<std::string>& prompt,
                std::optional<std::string>& file) {
    app.add_option("-p,--prompt", prompt, "prompt; special tokens in it, such as <s>, are read")
        ->type_name("TEXT");
    app.add_option("-f,--file", file, "file with the prompt; - is stdin")->type_name("FILE");
}

void add_conversation(CLI::App& app, GenerateOptions& options) {
    ConversationOptions& chat = options.chat;
    app.add_flag("--chat", chat.on, "wrap the prompt in the model's chat template");
    app.add_option("--system", chat.system, "the system message; implies --chat")
        ->type_name("TEXT");
    app.add_option("--messages", chat.messages,
                   "the conversation so far: JSON list of {\"role\", \"content\"}; a prompt is its "
                   "next message; implies --chat")
        ->type_name("FILE");
    app.add_option("--template", chat.chat_template,
                   "another chat template (Jinja); implies --chat")
        ->type_name("FILE");
    app.add_flag("--no-special", options.no_special,
                 "special tokens in the prompt, such as <s>, are plain text");
    app.add_option_function<std::string>(
           "--prompt-ids",
           [&options](const std::string& text) {
               options.prompt_ids = parse_ids("--prompt-ids", text);
           },
           "the prompt as token ids, BOS included")
        ->type_name("N,N,...");
}

void add_tokenize(CLI::App& app, TokenizeOptions& options) {
    app.add_option("-m,--model", options.model,
                   "folder, .gguf file, bundled name, or org/name in the Hugging Face cache; a "
                   "tokenizer alone will do (default: smollm2)")
        ->type_name("MODEL");
    app.add_option("text,-p,--prompt", options.prompt,
                   "text; special tokens in it, such as <s>, are read")
        ->type_name("TEXT");
    app.add_option("-f,--file", options.prompt_file, "file with the text; - is stdin")
        ->type_name("FILE");
    app.add_option("--strings", options.strings, "JSON list of texts")->type_name("FILE");
    app.add_option("--decode", options.decode,
                   "ids to be made text: N,N,... or a file with a JSON list of lists of ids")
        ->type_name("IDS|FILE");
    app.add_flag("--counts", options.counts,
                 "how often each token occurs, for --token-counts: lines of id and count");
    app.add_flag("--no-special", options.no_special,
                 "special tokens in the texts, such as <s>, are plain text");
    app.add_flag("--json", options.json, "print one JSON object");
    add_examples(app, {"aerie tokenize \"Hello, world\"", "aerie tokenize --decode 504,2365,282",
                       "aerie tokenize -m model.gguf --counts -f corpus.txt > counts.txt"});
}

void add_render(CLI::App& app, RenderOptions& options) {
    app.add_option("-m,--model", options.model, "model whose chat template is used")
        ->type_name("MODEL");
    app.add_option("--template", options.chat_template, "chat template (Jinja), without a model")
        ->type_name("FILE");
    app.add_option("--conversation", options.conversation,
                   "JSON: a list of messages, or an object with messages, tools, documents, kwargs")
        ->type_name("FILE")
        ->required();
    app.add_flag("--add-generation-prompt", options.add_generation_prompt,
                 "go on to where the assistant's answer begins");
    app.add_option_function<std::string>(
           "--now", [&options](const std::string& text) { options.now = parse_time(text); },
           "time that the template sees (default: the clock's)")
        ->type_name("TIME");
    app.add_option("--bos", options.bos, "text of the BOS token")->type_name("TEXT");
    app.add_option("--eos", options.eos, "text of the EOS token")->type_name("TEXT");
    app.add_flag("--json", options.json, "print one JSON object instead of the text");
    add_examples(app, {"aerie render --conversation messages.json --add-generation-prompt"});
}

}  // namespace aerie
