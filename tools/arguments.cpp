#include "arguments.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/ascii.h"
#include "core/error.h"
#include "core/suggestion.h"
#include "core/utf8.h"
#include "peer_flags.h"

namespace aerie {

namespace {

std::vector<std::string> long_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
    const auto found =
        app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

bool is_number(const std::string& text) {
    char* rest = nullptr;
    std::strtod(text.c_str(), &rest);
    return !text.empty() && *rest == 0;
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

class Reader {
  public:
    explicit Reader(const CLI::App& app) : app_(app), command_(&app) {}

    std::vector<std::string> read(const std::vector<std::string>& arguments) {
        for (const std::string& argument : arguments) {
            if (peer_ && take_peer_value(argument)) continue;
            if (waiting_ || only_values_)
                take_value(argument);
            else if (argument == "--")
                only_values_ = true, result_.push_back(argument);
            else if (argument.size() > 1 && argument.starts_with('-'))
                take_option(argument);
            else
                take_word(argument);
        }
        if (peer_ && peer_->value != PeerFlag::Value::on_or_off)
            fail(peer_name_ + " needs a value");
        if (waiting_) fail(waiting_name_ + " needs a value");
        if (is_for_cpu_) put_on_cpu();
        if (runs_ && !has_model_ && !wants_help_) fail("run needs a model: aerie run MODEL");
        return std::move(result_);
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        const std::string of = command_ == &app_ ? "" : command_->get_name() + " ";
        throw UsageError(what + " (see aerie " + of + "--help)");
    }

    void take_value(const std::string& argument) {
        if (!waiting_) return take_word(argument);
        if (waiting_->check_lname("device")) device_ = lower_ascii(argument);
        result_.push_back(argument);
        waiting_ = nullptr;
    }

    // Takes a flag of llama.cpp which is none of the command's own. False: it is no such flag.
    bool take_peer(const std::string& argument) {
        const size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const PeerFlag* flag = peer_flag(name);
        if (!flag || command_ == &app_ || command_->get_option_no_throw(name)) return false;
        if (flag->does == PeerFlag::Does::refused) fail(name + ": " + flag->text);
        if (flag->value == PeerFlag::Value::none && equals != argument.npos)
            fail(name + " takes no value");
        peer_ = flag;
        peer_name_ = name;
        if (flag->value == PeerFlag::Value::none)
            translate(""), peer_ = nullptr;
        else if (equals != argument.npos && !take_peer_value(argument.substr(equals + 1)))
            fail(name + " takes on, off or auto, not " + in_quotes(argument.substr(equals + 1)));
        return true;
    }

    // The value of the flag of llama.cpp that came last. False: the argument is no value of it.
    bool take_peer_value(const std::string& value) {
        const PeerFlag& flag = *std::exchange(peer_, nullptr);
        if (flag.value == PeerFlag::Value::on_or_off)
            return value == "on" || value == "off" || value == "auto" || value == "0" ||
                   value == "1";
        if (value.size() > 1 && value[0] == '-' && !is_number(value))
            fail(peer_name_ + " needs a value");
        if (flag.value == PeerFlag::Value::number && !is_number(value))
            fail(peer_name_ + " takes a number, not " + in_quotes(value));
        peer_ = &flag;
        translate(value);
        peer_ = nullptr;
        return true;
    }

    // Adds what the flag of llama.cpp means in our words.
    void translate(const std::string& value) {
        using Does = PeerFlag::Does;
        std::string ours = peer_->text, our_value = peer_->before_value + value;
        if (peer_->does == Does::nothing) return;
        if (peer_->does == Does::layers) {
            if (!is_number(value) && value != "all" && value != "auto")
                fail(peer_name_ + " takes a number of layers, not " + in_quotes(value));
            is_for_cpu_ = value == "0";
            return;
        }
        if (peer_->does == Does::one_device) {
            if (value != "0" && value != "none") fail(peer_name_ + ": " + peer_->text);
            return;
        }
        if (peer_->does == Does::sampler) {
            char* rest = nullptr;
            if (std::strtod(value.c_str(), &rest) != peer_->neutral || *rest != 0 || value.empty())
                fail(peer_name_ + ": " + peer_->text);
            return;
        }
        const CLI::Option* option = command_->get_option_no_throw(ours);
        if (!option && peer_->does == Does::means_here) return;
        if (ours == "--kv" && lower_ascii(value) != "f16" && lower_ascii(value) != "f32")
            fail(peer_name_ + " " + value +
                 ": the KV cache is f16 or f32 here; leave the flag out");
        if (!option)
            fail(peer_name_ + " is " + ours + " here, which aerie " + command_->get_name() +
                 " does not have");
        // Keys and values of a cache have one type, which may be said for both.
        const auto [said, is_first] = said_.emplace(ours, our_value);
        if (!is_first && said->second == our_value) return;
        if (!is_first && ours == "--kv")
            fail("keys and values have one type here: " + peer_name_ + " says another");
        begin(*option, ours, false);
        result_.push_back(ours);
        if (ours == "--device") device_ = our_value;
        if (takes_value(*option)) result_.push_back(our_value);
        has_model_ = has_model_ || ours == "--model";
    }

    // `-ngl 0` is --device cpu, which may be given beside it.
    void put_on_cpu() {
        const CLI::Option* device = command_->get_option_no_throw("--device");
        if (!device) return;
        if (device_.empty())
            result_.insert(result_.begin() + 1, {"--device", "cpu"});
        else if (!device_.starts_with("cpu"))
            fail("-ngl 0 means --device cpu, and --device says " + in_quotes(device_));
    }

    void take_option(const std::string& argument) {
        if (take_peer(argument)) return;
        if (argument.starts_with("--")) return take_long(argument);
        const std::vector<std::string> names = long_names(*command_);
        if (argument.size() > 2 &&
            std::find(names.begin(), names.end(), "-" + argument) != names.end())
            fail("unknown option " + argument + "; did you mean -" + argument + "?");
        if (argument.size() > 2 && is_a_name(argument)) unknown(argument);
        result_.push_back(argument);
        for (size_t i = 1; i < argument.size(); ++i) {
            const std::string name = std::string("-") + argument[i];
            const CLI::Option* option = command_->get_option_no_throw(name);
            if (!option) unknown(i == 1 ? argument : name);
            begin(*option, option->get_name(), i + 1 == argument.size());
            if (takes_value(*option)) return;
        }
    }

    // Whether "-cram" is meant as one name, and not as -c with the value "ram", for -c takes a
    // number; or "-hft", and not as -h with further letters.
    bool is_a_name(const std::string& argument) const {
        const CLI::Option* option = command_->get_option_no_throw(argument.substr(0, 2));
        if (!option || !std::isalpha(static_cast<unsigned char>(argument[2]))) return false;
        const std::string type = option->get_type_name();
        return option->check_lname("help") || type == "N" || type == "X";
    }

    void take_long(const std::string& argument) {
        const size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const CLI::Option* option = command_->get_option_no_throw(name);
        if (!option) unknown(name);
        const bool is_empty = equals == argument.size() - 1;
        if (name == "--device" && equals != argument.npos)
            device_ = lower_ascii(argument.substr(equals + 1));
        result_.push_back(is_empty ? name : argument);
        begin(*option, name, equals == argument.npos);
        if (is_empty && takes_value(*option)) result_.emplace_back();
    }

    // `waits`: its value, if it takes one, is the next argument.
    void begin(const CLI::Option& option, const std::string& name, bool waits) {
        if (takes_value(option) && ++times_[&option] > option.get_items_expected_max())
            fail(name + " is given twice");
        waiting_ = waits && takes_value(option) ? &option : nullptr;
        waiting_name_ = name;
        has_model_ = has_model_ || option.check_lname("model");
        wants_help_ = wants_help_ || option.check_lname("help");
    }

    [[noreturn]] void unknown(const std::string& option) const {
        if (command_ == &app_)
            for (const CLI::App* command : app_.get_subcommands({}))
                if (command->get_option_no_throw(option))
                    fail(option + " stands after a command, such as aerie " + command->get_name() +
                         " " + option);
        fail("unknown option " + option + suggestion(option, long_names(*command_)));
    }

    void take_word(const std::string& word) {
        if (command_ == &app_) return take_command(word);
        if (runs_ && !has_model_) {
            has_model_ = true;
            result_.push_back("--model");
        } else if (runs_ && message_at_ > 0) {
            result_[message_at_] += " " + word;  // as Ollama joins the words
            return;
        } else if (!fits()) {
            fail("unexpected argument " + in_quotes(word) + hint(word));
        } else if (runs_) {
            result_.push_back("--single-turn");
            message_at_ = result_.size();
        }
        result_.push_back(word);
    }

    // `aerie run MODEL [MESSAGE]`, as Ollama spells it, is a chat.
    void take_command(const std::string& word) {
        runs_ = word == "run";
        const std::string name = runs_ ? "chat" : word == "list" || word == "ls" ? "models" : word;
        command_ = command_named(app_, name);
        if (!command_) {
            command_ = &app_;
            const std::string like = suggestion(word, command_names(app_));
            fail("unknown command " + in_quotes(word) +
                 (like.empty() ? "; `aerie run MODEL` talks to a model" : like));
        }
        result_.push_back(name);
    }

    // Takes a word as the command's next argument without a flag; false if there is none.
    bool fits() {
        for (const CLI::Option* option : command_->get_options())
            if (option->get_positional() && times_[option] == 0) return ++times_[option] > 0;
        return false;
    }

    // Says which flag the word may have been meant for.
    std::string hint(const std::string& word) const {
        const CLI::Option* prompt = command_->get_option_no_throw("--prompt");
        if (prompt && prompt->get_positional()) return ": put the text in quotes";
        if (word.ends_with(".gguf") && command_->get_option_no_throw("--prompt"))
            return ": a model is given with -m";
        constexpr std::pair<const char*, const char*> kMeant[] = {
            {"--prompt", ": a prompt is given with -p, in quotes: -p \"Why is the sky blue?\""},
            {"--conversation", ": a conversation is given with --conversation"},
            {"--model", ": a model is given with -m"},
            {"--like", ": a shape is given with --like"},
            {"--output", ": a file to make is given with -o"}};
        for (const auto& [flag, help] : kMeant) {
            const CLI::Option* option = command_->get_option_no_throw(flag);
            if (option && !option->get_positional()) return help;
        }
        return "";
    }

    const CLI::App& app_;
    const CLI::App* command_;
    std::vector<std::string> result_;
    std::map<const CLI::Option*, int> times_;  // how often each was given
    const CLI::Option* waiting_ = nullptr;     // the option whose value comes next
    std::string waiting_name_;
    const PeerFlag* peer_ = nullptr;  // the flag of llama.cpp whose value comes next
    std::string peer_name_;
    std::map<std::string, std::string> said_;  // our flags that llama.cpp's stood for
    bool only_values_ = false, runs_ = false, has_model_ = false, wants_help_ = false;
    bool is_for_cpu_ = false;  // by -ngl 0
    std::string device_;       // value of --device
    size_t message_at_ = 0;    // place of the message of `aerie run` in the result; 0: none
};

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    names.insert(names.end(), {"help", "list", "run", "version"});
    return names;
}

std::vector<std::string> understood(const CLI::App& app, std::vector<std::string> arguments) {
    if (!arguments.empty() && arguments[0] == "help") {
        arguments.erase(arguments.begin());
        arguments.insert(arguments.begin() + (arguments.empty() ? 0 : 1), "--help");
        if (arguments[0] == "version" || arguments[0] == "help") arguments = {"--help"};
    } else if (arguments.size() == 1 && (arguments[0] == "version" || arguments[0] == "-v")) {
        arguments[0] = "--version";
    }
    return Reader(app).read(arguments);
}

}  // namespace aerie
