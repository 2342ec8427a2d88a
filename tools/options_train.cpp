// Flags of `aerie train`.
#include "help.h"
#include "option_checks.h"

namespace aerie {

namespace {

const Choices<bool> kTrainedKinds = {{"eagle3", false}, {"eagle2", true}};

}  // namespace

void add_train(CLI::App& app, TrainOptions& options) {
    const auto add_number = [&](const char* flags, auto& value, const char* type,
                                const char* help) {
        return app.add_option(flags, value, help)->check(number())->type_name(type);
    };
    app.option_defaults()->group("What is trained, and on what");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    app.add_option("-o,--output", options.folder, "folder of the head, to make or to go on with")
        ->required()
        ->type_name("HEAD");
    add_choice(app, "--kind", options.is_eagle2, kTrainedKinds,
               "kind of the head (default: eagle3)");
    app.add_option("--prompts", options.prompts,
                   "prompts that the model answers, to learn from the answers: JSON Lines with "
                   "\"turns\", \"prompt\", \"messages\" or \"conversations\"; may be given several "
                   "times; - is stdin")
        ->allow_extra_args(false)
        ->type_name("FILE");
    app.add_option(
           "--texts", options.texts,
           "conversations with their answers, or plain texts (\"text\", or a .txt file); may "
           "be given several times")
        ->allow_extra_args(false)
        ->type_name("FILE");
    app.add_option("--init", options.init, "begin with this head instead of random numbers")
        ->type_name("HEAD");
    app.add_flag("--resume", options.goes_on, "go on with the training that HEAD holds");
    app.option_defaults()->group("How long");
    add_whole(app, "--steps", options.steps, Range{1, 1 << 30}, "steps of the optimiser");
    add_number("--hours", options.hours, "H", "hours of learning (default: 1, if no --steps)");
    add_whole(app, "--patience", options.patience, Range{1, 1 << 20},
              "end early after so many evaluations without a better head (default: 10)");
    app.option_defaults()->group("Answers");
    add_whole(app, "--max-prompts", options.max_prompts, Range{1, INT_MAX},
              "most prompts to answer (default: all)");
    add_number("--temp,--temperature", options.temperature, "T",
               "temperature of the answers (default: 0)");
    add_whole(app, "-n,--predict", options.max_answer, Range{1, 1 << 20},
              "most tokens of an answer (default: 512)");
    add_whole(app, "--parallel", options.parallel, Range{1, 16},
              "prompts that are answered in one pass (default: 16)");
    app.option_defaults()->group("The head and how it learns");
    add_whole(app, "--draft-vocab", options.draft_vocab, Range{16, 1 << 24},
              "eagle3: tokens that it can draft, the most frequent of the answers (default: 8192)");
    add_whole(app, "--ttt", options.depths, Range{1, 16},
              "eagle3: depths of the training-time test (default: 5)");
    add_number("--lr", options.rate, "X", "learning rate (default: 0.001; 0.0001 with --init)");
    add_whole(app, "--batch", options.batch_rows, Range{16, 1 << 20},
              "tokens of a step (default: 2048)");
    add_whole(app, "--max-text", options.max_text, Range{16, 1 << 20},
              "tokens of a text; longer ones are cut (default: 1024)");
    add_whole(app, "-s,--seed", options.seed, Range<uint64_t>{0, INT64_MAX},
              "same seed, data and threads: same head (default: 1)");
    app.option_defaults()->group("Device and output");
    app.add_option("--device", options.model.device,
                   "runs the model; see `aerie devices` (default: the best)")
        ->type_name("NAME");
    add_type_options(app, options.model);
    app.add_flag("--profile", options.model.profile,
                 "at the end the time of each op, of the model's passes and of the training");
    app.add_flag("-q,--quiet", options.quiet, "no progress on stderr");
    add_examples(app, {"aerie train -m Qwen3-0.6B -o Qwen3-0.6B-eagle3 --hours 8 "
                       "--prompts q.jsonl",
                       "aerie train -m Qwen3-0.6B -o Qwen3-0.6B-eagle3 --resume "
                       "--hours 8"});
}

}  // namespace aerie
