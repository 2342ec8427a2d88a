// Flags of `aerie chat`.
#include "help.h"
#include "option_checks.h"

namespace aerie {

void add_chat(CLI::App& app, ChatOptions& options) {
    app.option_defaults()->group("Conversation");
    app.add_option("message,-p,--prompt", options.message, "the first message")->type_name("TEXT");
    app.add_flag("--single-turn", options.single_turn, "end after the answer to it");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    app.add_option("--system", options.system, "the system message")->type_name("TEXT");
    app.add_option("--template", options.chat_template,
                   "another chat template (Jinja) than the model's")
        ->type_name("FILE");
    add_whole(app, "-n,--predict", options.max_tokens, Range{-1, 1 << 24},
              "most tokens of an answer (default: -1, to the end of the context)");
    app.add_flag("--shade", options.shade, "show drafted tokens in another colour, on a terminal");
    app.add_flag("--hide-thinking", options.hide_thinking,
                 "show no thoughts of a reasoning model (<think>), only that it is thinking");
    app.add_flag("--stats", options.stats,
                 "after each answer a line on stderr: tokens/s, tau, time to the first token");
    app.add_flag("--learn", options.learn,
                 "the model's EAGLE head learns from the answers in idle time, to draft better; "
                 "`aerie forget` deletes it all");
    add_sampling_options(app, options.sampling);
    add_model_options(app, options.model);
    app.footer(
        "Each line is a message; one that ends in \\ goes on in the next, and so does all between "
        "\"\"\" and \"\"\". /help lists the commands. On a terminal Ctrl-C stops an answer and "
        "Ctrl-D ends the talk; through a pipe answers alone go to stdout, and the exit code is 1 "
        "if "
        "a line could not be answered.");
    add_examples(app, {"aerie chat", "aerie chat \"Why is the sky blue?\" --shade",
                       "aerie chat -hf bartowski/Llama-3.2-3B-Instruct-GGUF",
                       "aerie chat -m ~/models/Qwen3-8B -md ~/models/Qwen3-0.6B --weights q8_0"});
}

}  // namespace aerie
