#include "completion.h"

#include <functional>

#include "arguments.h"

namespace aerie {

namespace {

// The flags of a command that its help shows, such as --model and -m.
void for_each_flag(const CLI::App& command,
                   const std::function<void(const CLI::Option&, const std::string& flag)>& visit) {
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_group().empty()) continue;
        for (const std::string& name : option->get_lnames()) visit(*option, "--" + name);
        for (const std::string& name : option->get_snames()) visit(*option, "-" + name);
    }
}

// The values of an option whose help lists them as "f32|f16", separated by spaces; else empty.
std::string values(const CLI::Option& option) {
    std::string names = option.get_items_expected_max() > 0 ? option.get_type_name() : "";
    if (names.find('|') == names.npos || names.find_first_of(",[ ") != names.npos) return "";
    for (char& c : names)
        if (c == '|') c = ' ';
    return names;
}

std::string flags_of(const CLI::App& command) {
    std::string flags;
    for_each_flag(command, [&](const CLI::Option&, const std::string& flag) {
        flags += (flags.empty() ? "" : " ") + flag;
    });
    return flags;
}

std::string names_of_commands(const CLI::App& app) {
    std::string names;
    for (const std::string& name : command_names(app)) names += (names.empty() ? "" : " ") + name;
    return names;
}

// A shell `case` with a branch for each command that sets `flags` and `values`; bash and zsh read
// it alike. `word` and `before` are shell expressions: the command, and the word before the one to
// complete.
std::string cases(const CLI::App& app, const std::string& word, const std::string& before) {
    std::string text = "    case \"" + word + "\" in\n";
    for (const CLI::App* command : app.get_subcommands({})) {
        text += "    " + command->get_name() + ")\n        flags=\"" + flags_of(*command) + "\"\n";
        std::string choices;
        for_each_flag(*command, [&](const CLI::Option& option, const std::string& flag) {
            if (const std::string names = values(option); !names.empty())
                choices += "        " + flag + ") values=\"" + names + "\" ;;\n";
        });
        if (!choices.empty())
            text += "        case \"" + before + "\" in\n" + choices + "        esac\n";
        text += "        ;;\n";
    }
    return text + "    esac\n";
}

std::string for_bash(const CLI::App& app) {
    return "_aerie() {\n"
           "    local word=\"${COMP_WORDS[COMP_CWORD]}\" flags= values=\n" +
           cases(app, "${COMP_WORDS[1]}", "${COMP_WORDS[COMP_CWORD-1]}") +
           "    local first=\"${COMP_WORDS[1]}\"\n"
           "    if [ \"$COMP_CWORD\" = 1 ] || [ \"$first\" = help ]; then values=\"" +
           names_of_commands(app) +
           "\"\n"
           "    elif [ \"$first\" = completion ]; then values=\"bash zsh fish\"\n"
           "    elif [ -z \"$values\" ] && [ \"${word#-}\" != \"$word\" ]; then values=\"$flags\"\n"
           "    fi\n"
           "    COMPREPLY=()\n"
           "    if [ -n \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); "
           "fi\n"
           "}\n"
           "complete -o default -F _aerie aerie\n";
}

std::string for_zsh(const CLI::App& app) {
    return "#compdef aerie\n"
           "_aerie() {\n"
           "    local flags= values=\n" +
           cases(app, "${words[2]}", "${words[CURRENT-1]}") +
           "    if (( CURRENT == 2 )) || [[ ${words[2]} == help ]]; then values=\"" +
           names_of_commands(app) +
           "\"\n"
           "    elif [[ ${words[2]} == completion ]]; then values='bash zsh fish'\n"
           "    elif [[ -z $values && $PREFIX == -* ]]; then values=$flags\n"
           "    fi\n"
           "    if [[ -n $values ]]; then compadd -- ${=values}; else _files; fi\n"
           "}\n"
           "compdef _aerie aerie\n";
}

// The first line of `text` in single quotes of fish.
std::string quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\n') break;  // the first line says enough
        if (c == '\'' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return quoted + "'";
}

std::string for_fish(const CLI::App& app) {
    std::string text =
        "complete -c aerie -e\n"
        "complete -c aerie -f -n __fish_use_subcommand -a 'help list run version'\n"
        "complete -c aerie -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
    for (const CLI::App* command : app.get_subcommands({})) {
        text += "complete -c aerie -f -n __fish_use_subcommand -a " + command->get_name() + " -d " +
                quoted(command->get_description()) + "\n";
        for (const CLI::Option* option : command->get_options()) {
            if (option->get_group().empty() || option->get_lnames().empty()) continue;
            text +=
                "complete -c aerie -n '__fish_seen_subcommand_from " + command->get_name() + "'";
            for (const std::string& name : option->get_lnames()) text += " -l " + name;
            for (const std::string& name : option->get_snames()) text += " -s " + name;
            if (const std::string names = values(*option); !names.empty())
                text += " -x -a " + quoted(names);
            else if (option->get_items_expected_max() > 0)
                text += " -r";
            text += " -d " + quoted(option->get_description()) + "\n";
        }
    }
    return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
    if (shell == "bash") return for_bash(app);
    return shell == "zsh" ? for_zsh(app) : for_fish(app);
}

}  // namespace aerie
