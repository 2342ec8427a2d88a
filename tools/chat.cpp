// `aerie chat`: a conversation turn by turn. Answers go to stdout, all else to stderr.
#include <unistd.h>

#include <mutex>

#include "answerer.h"
#include "assumed.h"
#include "chat_line.h"
#include "commands.h"
#include "core/error.h"
#include "core/replaced_file.h"
#include "core/utf8.h"
#include "io/json.h"
#include "learning.h"
#include "line_history.h"
#include "line_reader.h"
#include "talk/locate.h"
#include "terminal.h"

namespace aerie {

namespace {

namespace fs = std::filesystem;

// Lines from another thread, for a moment at which nothing else is written.
class Notes {
  public:
    void add(const std::string& line) {
        const std::lock_guard guard(mutex_);
        lines_.push_back(line);
    }
    void show() {
        const std::lock_guard guard(mutex_);
        for (const std::string& line : std::exchange(lines_, {})) print_note("(" + line + ")");
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

class Chat {
  public:
    Chat(std::shared_ptr<SharedModel> model, const NamedText& chat_template, Dialogue dialogue,
         const AnswerSettings& settings, Learning* learning, Notes& notes)
        : model_(model),
          template_(chat_template),
          answerer_(std::move(model), chat_template, learning),
          dialogue_(std::move(dialogue)),
          settings_(settings),
          notes_(notes) {}

    // Returns false if it was the last line. Throws Error, UsageError.
    bool take(const ChatLine& line);

  private:
    bool drafts() const { return model_->can_draft() && settings_.drafts; }
    void answer(Dialogue asked);
    void ask(const std::string& message);
    void begin_anew();
    void set(const std::string& setting);
    void add_file(const std::string& file);
    void retry();
    void undo();
    void tell_first(const std::string& system);
    void save(const fs::path& file) const;
    void load(const fs::path& file);
    void draft(const ChatLine& line);
    void shade(const ChatLine& line);

    std::shared_ptr<SharedModel> model_;
    const NamedText& template_;
    Answerer answerer_;
    Dialogue dialogue_;
    AnswerSettings settings_;
    std::string files_;  // texts of files for the next message
    Notes& notes_;
};

const char* on_or_off(bool on) {
    return on ? "on" : "off";
}

// The messages of a stored conversation; the file beside it holds the computed state.
fs::path messages_file(fs::path file) {
    return file += ".json";
}

bool Chat::take(const ChatLine& line) {
    using Kind = ChatLine::Kind;
    notes_.show();
    switch (line.kind) {
        case Kind::nothing:
            return true;
        case Kind::message:
            return ask(line.text), true;
        case Kind::begin_anew:
            return begin_anew(), true;
        case Kind::set:
            return set(line.text), true;
        case Kind::add_file:
            return add_file(line.text), true;
        case Kind::system:
            return tell_first(line.text), true;
        case Kind::retry:
            return retry(), true;
        case Kind::undo:
            return undo(), true;
        case Kind::save:
            return save(line.text), true;
        case Kind::load:
            return load(line.text), true;
        case Kind::draft:
            return draft(line), true;
        case Kind::shade:
            return shade(line), true;
        case Kind::think:
            settings_.fold_thoughts = !line.on.value_or(settings_.fold_thoughts);
            return print_note(settings_.fold_thoughts ? "(thoughts hidden)" : "(thoughts shown)"),
                   true;
        case Kind::stats:
            settings_.stats = line.on.value_or(!settings_.stats);
            return print_note(std::string("(statistics ") + on_or_off(settings_.stats) + ")"), true;
        case Kind::help:
            return tell(chat_help()), true;
        case Kind::exit:
            return false;
    }
    return true;
}

// A message that cannot be answered at all leaves the dialogue as it was.
void Chat::answer(Dialogue asked) {
    std::swap(asked, dialogue_);
    try {
        answerer_.answer(dialogue_, settings_);
    } catch (const UsageError&) {
        dialogue_ = std::move(asked);
        throw;
    }
}

void Chat::ask(const std::string& message) {
    Dialogue asked = dialogue_;
    const std::string files = std::exchange(files_, {});
    asked.ask(files + message);
    try {
        answer(std::move(asked));
    } catch (const UsageError& error) {
        if (files.empty()) throw;
        throw UsageError(error.what() + std::string("; /file is dropped, too"));
    }
}

void Chat::begin_anew() {
    dialogue_.turns.clear();
    files_.clear();
    print_note("(a new conversation)");
}

void Chat::set(const std::string& setting) {
    if (!setting.empty()) set_by_name(settings_, setting);
    print_note("(" + shown(settings_) + ")");
}

namespace {

// Throws UsageError for a folder, a pipe or a device: reading it could wait for ever.
void refuse_special(const std::string& command, const fs::path& file) {
    std::error_code ignored;
    const fs::file_status status = fs::status(file, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status))
        throw UsageError(command + " " + file.string() + ": not a regular file");
}

}  // namespace

void Chat::add_file(const std::string& file) {
    if (file == "-") throw UsageError("/file -: messages come from stdin already");
    refuse_special("/file", file);
    const std::string text = read_input(file);
    if (!is_utf8(text)) throw UsageError("/file " + file + ": not a text in UTF-8");
    files_ += fs::path(file).filename().string() + ":\n" + text + "\n\n";
    print_note("(" + file + ", " + std::to_string(text.size()) +
               " bytes: it goes before your next message)");
}

void Chat::retry() {
    if (dialogue_.turns.empty()) throw UsageError("/retry: there is no message yet");
    if (settings_.sampling.filters.temperature > 0) {
        ++settings_.sampling.seed;
        print_note("(again, with seed " + std::to_string(settings_.sampling.seed) + ")");
    } else {
        print_note("(greedy: the same text again; /set temp 0.8 varies it)");
    }
    Dialogue asked = dialogue_;
    asked.turns.back().answer.reset();
    answer(std::move(asked));
}

void Chat::undo() {
    if (dialogue_.turns.empty()) throw UsageError("/undo: there is no message yet");
    print_note("(removed: " + in_quotes(dialogue_.turns.back().message) + ")");
    dialogue_.turns.pop_back();
}

void Chat::tell_first(const std::string& system) {
    if (system.empty()) {
        dialogue_.system.reset();
        return print_note("(no system message)");
    }
    check_system(template_, model_->tokenizer().named_tokens(), system);
    dialogue_.system = system;
    print_note("(system message set)");
}

// Whether the file holds messages that /load takes.
bool is_messages_file(const fs::path& path) {
    try {
        dialogue_of(read_conversation(read_input(path.string()), path.string()), path.string());
        return true;
    } catch (const Error&) {
        return false;
    }
}

// Replaces an earlier conversation, and no other file.
void Chat::save(const fs::path& file) const {
    if (dialogue_.turns.empty()) throw UsageError("/save: there is no message yet");
    const fs::path messages = messages_file(file);
    for (const fs::path& path : {file, messages}) {
        std::error_code ignored;
        const fs::file_status status = fs::status(path, ignored);
        if (!fs::exists(status)) continue;
        const bool is_ours = fs::is_regular_file(status) &&
                             (path == file ? is_talk_file(path) : is_messages_file(path));
        if (!is_ours)
            throw UsageError("/save: " + path.string() +
                             " exists already and is no stored conversation: name another file");
    }
    const ReplacedFile replaced(messages, FileAccess::owner);
    answerer_.save(file);
    replaced.commit(dialogue_.conversation().messages.dump() + "\n");
    print_note("(stored: " + file.string() + " and " + messages.string() + ")");
}

// Messages without the computed state are enough: the state is computed again.
void Chat::load(const fs::path& file) {
    const std::string messages = messages_file(file).string();
    std::error_code ignored;
    if (!fs::exists(messages, ignored))
        throw UsageError("/load " + file.string() + ": there is no " + messages +
                         "; /save FILE stores a conversation");
    for (const fs::path& path : {file, fs::path(messages)}) refuse_special("/load", path);
    Dialogue stored = dialogue_of(read_conversation(read_input(messages), messages), messages);
    std::string note = "no computed state in " + file.string() + ": its text is read anew";
    try {
        if (fs::exists(file, ignored)) note = answerer_.load(file);
    } catch (const Error& error) {
        throw Error(std::string(error.what()) + "; without that file /load reads " + messages +
                    " alone");
    }
    dialogue_ = std::move(stored);
    print_note("(loaded " + messages + ": " + std::to_string(dialogue_.turns.size()) +
               (dialogue_.turns.size() == 1 ? " turn)" : " turns)"));
    if (!note.empty()) print_note("(" + note + ")");
}

void Chat::draft(const ChatLine& line) {
    const bool on = line.on.value_or(!drafts());
    if (on && !model_->can_draft())
        throw UsageError("/draft: there is nothing that drafts (see --head and --draft)");
    settings_.drafts = on;
    print_note(std::string("(drafting ") + on_or_off(on) + ")");
}

void Chat::shade(const ChatLine& line) {
    const bool on = line.on.value_or(!settings_.shade);
    if (on && !has_colors(stdout)) throw UsageError("/shade: no colours are shown here");
    settings_.shade = on;
    print_note(std::string("(shading ") + on_or_off(on) + ")");
}

// Reads until a text is whole. False at the end of the input.
bool read_text(LineReader& reader, ChatInput::Text& text) {
    ChatInput input;
    std::string line;
    while (true) {
        switch (reader.read(input.has_begun() ? ". " : "> ", line)) {
            case LineReader::Got::cleared:
                input.take();
                continue;
            case LineReader::Got::end:
                if (!input.has_begun() || interrupted()) return false;
                text = input.take();
                return true;
            case LineReader::Got::line:
                if (!input.add(line)) continue;
                text = input.take();
                return true;
        }
    }
}

// Calls `act`. Returns false if it throws an error, which it prints.
template <class Act>
bool succeeds(const Act& act) {
    try {
        act();
        return true;
    } catch (const OutputError&) {
        throw;
    } catch (const Error& error) {
        tell_error(error.what());
        return false;
    }
}

// Answers the message that the command line gave. Returns false if that failed.
bool answer_first(Chat& chat, const std::string& message, bool is_terminal) {
    if (is_terminal) tell("> " + message + "\n");
    return succeeds([&] { chat.take({.kind = ChatLine::Kind::message, .text = message}); });
}

// Runs until the input ends. On a terminal an error ends nothing; elsewhere the exit code reports
// it, also one that came before (`failed`).
int talk_by(LineReader& reader, Chat& chat, bool is_terminal, bool failed) {
    ChatInput::Text text;
    while (!interrupted() && read_text(reader, text)) {
        bool goes_on = true;
        if (!succeeds([&] { goes_on = chat.take(read_chat_line(text)); })) failed = true;
        if (!goes_on) break;
    }
    if (interrupted()) return interrupted();
    return failed && !is_terminal ? 1 : 0;
}

// An empty system message is none.
std::optional<std::string> system_of(const ChatOptions& options) {
    return options.system && options.system->empty() ? std::nullopt : options.system;
}

// Checks everything that can be refused before the model is loaded, which may take long.
NamedText checked_template(const ChatOptions& options, const Tokenizer& tokenizer) {
    NamedText chat_template;
    if (options.chat_template)
        chat_template = {read_input(*options.chat_template), *options.chat_template};
    else
        chat_template = chat_template_of(tokenizer);
    rendered(chat_template, tokenizer, {.turns = {{"x", {}}}});
    if (options.system && !options.system->empty())
        check_system(chat_template, tokenizer.named_tokens(), *options.system);
    return chat_template;
}

// Whether the text names a model, or a file that might be one.
bool may_name_model(const std::string& text) {
    std::error_code ignored;
    if (text.ends_with(".gguf") || fs::exists(text, ignored)) return true;
    if (text.find(' ') != text.npos) return false;
    try {
        find_model(text, model_folders());
        return true;
    } catch (const Error&) {
        return false;
    }
}

// A text that names a model is hardly a message.
void refuse_model_as_message(const ChatOptions& options) {
    if (options.message && !options.model.model && may_name_model(*options.message))
        throw UsageError(in_quotes(*options.message) +
                         " would be the first message: a model is given with -m, or by aerie run " +
                         *options.message);
}

// The message of the command line. A file or pipe on stdin stands before a message that is the only
// one, as in `aerie run MODEL "Sum this up" < report.txt`.
std::optional<std::string> first_message(const ChatOptions& options) {
    if (!options.single_turn || !is_file_or_pipe(stdin)) return options.message;
    const std::string text = read_input("-");
    if (!is_utf8(text)) throw UsageError("stdin: not a text in UTF-8");
    return text.empty() ? options.message : text + "\n" + *options.message;
}

std::unique_ptr<LineReader> make_reader(bool is_terminal) {
    std::unique_ptr<LineReader> editor;
    if (is_terminal) editor = make_line_editor(chat_history_file());
    return editor ? std::move(editor) : make_plain_reader(is_terminal);
}

}  // namespace

int run_chat(const ChatOptions& options) {
    const bool is_terminal = ::isatty(STDIN_FILENO);
    sampling_of(options.sampling, {});
    refuse_model_as_message(options);
    const std::optional<std::string> message = first_message(options);
    LoadOptions load_options = locate(options.model);
    ProgressLine progress(!is_terminal);
    load_options.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load_options);
    tell_assumed(files);
    Tokenizer tokenizer = load_tokenizer(files);
    tell_unused(options.model, load_options.draft.method);
    const NamedText chat_template = checked_template(options, tokenizer);
    AnswerSettings settings{
        .sampling = sampling_of(options.sampling, generation_config(files.target)),
        .max_tokens = options.max_tokens,
        .stats = options.stats,
        .shade = options.shade,
        .fold_thoughts = options.hide_thinking,
        .on_terminal = is_terminal};
    tell_unused(options.sampling, settings.sampling);
    const auto model =
        std::make_shared<SharedModel>(std::move(files), std::move(tokenizer), load_options);
    progress.clear();

    Notes notes;
    std::shared_ptr<Learning> learning;
    if (options.learn)
        learning = start_learning(model, load_options,
                                  [&](const std::string& line) { notes.add(printable(line)); });
    if (is_terminal) {
        print_note(load_options.model.filename().string() + " on " + model->device().name + ", " +
                   std::to_string(model->context()) + " tokens of context" +
                   (model->can_draft() ? ", drafts by " + model->options().draft.method : "") +
                   (learning ? ", learns from its answers (aerie forget deletes them)" : "") +
                   "; /help lists the commands");
        note_interrupts();
    }
    end_cleanly_on_signals();
    const std::unique_ptr<LineReader> reader = make_reader(is_terminal);
    Chat chat(model, chat_template, {.system = system_of(options)}, settings, learning.get(),
              notes);
    const bool failed = message && !answer_first(chat, *message, is_terminal);
    const int code = options.single_turn ? (interrupted() ? interrupted() : failed)
                                         : talk_by(*reader, chat, is_terminal, failed);
    learning.reset();
    notes.show();
    if (options.model.profile) print_op_times(model->backend());
    model->review_costs();
    return code;
}

}  // namespace aerie
