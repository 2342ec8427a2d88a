// Wrong command lines and variables, and prompts that do not fit.
#include "tools/bad_case.h"

namespace aerie::test {

namespace {

BadCase usage(std::string name, std::vector<std::string> flags, std::vector<std::string> says) {
    BadCase bad{std::move(name), std::move(says), {}, std::move(flags)};
    bad.exit_code = 2;
    return bad;
}

BadCase command(std::string name, std::vector<std::string> command, std::vector<std::string> says,
                int exit_code) {
    BadCase bad{std::move(name), std::move(says)};
    bad.command = std::move(command);
    bad.exit_code = exit_code;
    return bad;
}

BadCase variable(std::string name, std::string variable, std::string value, int exit_code) {
    BadCase bad{std::move(name), {variable, value}};
    bad.variables = {{variable, value}};
    bad.exit_code = exit_code;
    return bad;
}

BadCase tokens(std::string name, const std::string& flag, const std::string& value) {
    return command(std::move(name), {"generate", "-m", "target", "-p", "x", flag, value, "-q"},
                   {"--predict", "whole number", "'" + value + "'"}, 2);
}

// A template and a conversation, rendered.
BadCase rendering(std::string name, const std::string& chat_template, std::vector<std::string> says,
                  int exit_code) {
    BadCase bad =
        command(std::move(name), {"render", "--template", "t.jinja", "--conversation", "-"},
                std::move(says), exit_code);
    bad.input = R"([{"role": "user", "content": "Hi"}])";
    bad.damage = [=](const ModelPair& models) { models.write("t.jinja", chat_template); };
    return bad;
}

std::vector<std::string> compare_with(const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"compare",  "-m",  "target",   "-q",
                                        "--device", "cpu", "--device", "cpu"};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
}

const std::vector<BadCase> kUsage = {
    usage("UnknownFlag", {"--frobnicate"}, {"--frobnicate"}),
    usage("StrayArgument", {"stray"}, {"stray"}),
    usage("MissingValue", {"--temp"}, {"--temp needs a value"}),
    usage("MissingValueOfALetter", {"-m"}, {"--model"}),
    usage("Mistyped", {"--temperatur", "1"},
          {"unknown option --temperatur; did you mean --temperature? (see aerie generate --help)"}),
    usage("LettersSwapped", {"--drfat=none"}, {"unknown option --drfat; did you mean --draft?"}),
    usage("Begun", {"--ctx", "64"}, {"unknown option --ctx; did you mean --ctx-size?"}),
    usage("OneDash", {"-temp", "1"}, {"unknown option -temp; did you mean --temp?"}),
    usage("UnknownLetter", {"-qz"}, {"unknown option -z"}),
    usage("LayersAreNoNumber", {"-ngl", "most"}, {"-ngl takes a number of layers, not 'most'"}),
    usage("NoClusterOfFlags", {"-cram2", "5"}, {"unknown option -cram2"}),
    usage("MirostatOn", {"--mirostat", "2"}, {"--mirostat: aerie has no such sampler"}),
    usage("HeadThetaNan", {"--head-rope-theta", "nan"}, {"--head-rope-theta: expected"}),
    usage("HeadTapsDescend", {"--head-taps", "3,2"}, {"--head-taps: expected ascending layers"}),
    usage("LayersMissing", {"-ngl"}, {"-ngl needs a value"}),
    usage("NoSlots", {"-np", "0"}, {"--parallel: expected a whole number from 1 to 64"}),
    usage("KeysAndValuesOfTwoTypes", {"-ctk", "f16", "-ctv", "f32"}, {"one type", "-ctv"}),
    usage("SplitOverDevices", {"-ts", "3,1"}, {"-ts: a model runs on one device", "--device"}),
    usage("Grammar", {"--grammar", "root ::= x"}, {"--grammar: aerie does not constrain"}),
    usage("Image", {"--mmproj", "x.gguf"}, {"--mmproj: aerie reads text alone"}),
    usage("Adapter", {"--lora=x.gguf"}, {"--lora: aerie applies no adapters"}),
    usage("MixtureOfTypes", {"--weights", "Q4_K_M"}, {"'Q4_K_M' names a mixture", "take q4_k"}),
    usage("LogprobsWithoutJson", {"--logprobs"}, {"--logprobs", "add --json"}),
    usage("ContextTiny", {"-c", "1"}, {"a context of 1", "2 to 2048"}),
    usage("ContextBeyondModel", {"-c", "5000"}, {"context of 5000", "2048"}),
    usage("ContextHuge", {"-c", "99999999999999999999"}, {"--ctx-size"}),
    usage("NoThreads", {"-t", "0"}, {"--threads", "'0'"}),
    usage("ManyThreads", {"-t", "100000"}, {"--threads"}),
    usage("TemperatureNegative", {"--temp", "-1"}, {"temperature", "-1"}),
    usage("TemperatureNan", {"--temp", "nan"}, {"--temp", "'nan'"}),
    usage("TemperatureHuge", {"--temp", "1e999"}, {"--temp", "'1e999'"}),
    usage("TemperatureWord", {"--temp", "hot"}, {"--temp", "'hot'"}),
    usage("TopPOver1", {"--top-p", "2"}, {"top-p", "2"}),
    usage("MinPNegative", {"--min-p", "-1"}, {"min-p", "-1"}),
    usage("TopKNegative", {"--top-k", "-2"}, {"--top-k", "'-2'"}),
    usage("TopKHuge", {"--top-k", "2000000000"}, {"top-k"}),
    usage("RepetitionZero", {"--repeat-penalty", "0"}, {"repetition penalty"}),
    usage("PresenceHuge", {"--presence-penalty", "1e9"}, {"presence penalty"}),
    usage("SeedNegative", {"-s", "-2"}, {"--seed", "'-2'"}),
    usage("SeedHuge", {"-s", "18446744073709551616"}, {"--seed"}),
    usage("ContextOctal", {"-c", "0x10"}, {"--ctx-size", "'0x10'"}),
    usage("RepetitionAsWritten", {"--repeat-penalty", "0.001"},
          {"between 0.01 and 100, not 0.001\n"}),
    usage("TreeOfOneNode", {"--tree", "1,6,10"}, {"nodes", "not 1"}),
    usage("TreeOf65Nodes", {"--tree", "65,6,10"}, {"nodes", "not 65"}),
    usage("TreeOf33Levels", {"--tree", "60,33,10"}, {"levels", "not 33"}),
    usage("TreeOfTop33", {"--tree", "60,6,33"}, {"top-k", "not 33"}),
    usage("TreeWord", {"--tree", "abc"}, {"--tree", "'abc'"}),
    usage("TreeOfFour", {"--tree", "60,6,10,1"}, {"--tree"}),
    usage("TreeOverflow", {"--tree", "99999999999,6,10"}, {"--tree"}),
    usage("WeightsUnknown", {"--weights", "q3"}, {"--weights", "'q3'"}),
    usage("DraftWeightsUnknown", {"--draft-weights", ""}, {"--draft-weights"}),
    usage("KvUnknown", {"--kv", "bf16"}, {"--kv", "'bf16'"}),
    usage("DraftUnknown", {"--draft", "oracle"}, {"--draft", "|model|best, not", "'oracle'"}),
    usage("LookaheadTooLarge", {"--draft", "lookahead", "--lookahead", "8,5,8"},
          {"--lookahead", "(N-1) (W+G)", "63"}),
    usage("LookaheadNoNumbers", {"--lookahead", "7,5"}, {"--lookahead", "W,N,G", "'7,5'"}),
    usage("ProposalsUnknown", {"--proposals", "best"}, {"--proposals", "'best'"}),
    usage("AcceptUnknown", {"--accept", "half"}, {"--accept", "keyed|p/q", "'half'"}),
    usage("AcceptDrawnOfDefault", {"--accept", "p/q"}, {"p/q", "chain or eagle1", "not grafted"}),
    usage("AcceptDrawnOfEagle3", {"--accept", "p/q", "--draft", "eagle3", "--head", "target-eagle"},
          {"p/q", "chain or eagle1", "not eagle3"}),
    usage("AcceptDrawnOfLookup", {"--accept", "p/q", "--draft", "lookup"}, {"p/q", "not lookup"}),
    usage("AcceptDrawnOfNone", {"--accept", "p/q", "--draft", "none"}, {"p/q", "not none"}),
    usage("AcceptDrawnTree", {"--accept", "p/q", "--draft", "chain", "--tree", "8,2,2"},
          {"p/q", "--tree"}),
    usage("AcceptDrawnComparePlain",
          {"--accept", "p/q", "--draft", "chain", "--temp", "1", "--compare-plain"},
          {"--compare-plain", "p/q"}),
    usage("ChainEmpty", {"--chain-length", "0"}, {"--chain-length", "'0'"}),
    usage("ChainLong", {"--chain-length", "33"}, {"--chain-length", "'33'"}),
    usage("ChainFixedTwice", {"--draft", "chain", "--chain-length", "3", "--tree", "published"},
          {"--tree published", "--chain-length"}),
    usage("LookaheadFixedTwice",
          {"--draft", "lookahead", "--lookahead", "3,3,3", "--tree", "published"},
          {"--tree published", "--lookahead"}),
    usage("StopEmpty", {"--stop", ""}, {"--stop", "not empty", "''"}),
    usage("StopEmptyByEquals", {"--stop="}, {"--stop", "not empty"}),
    usage("StopNoUtf8", {"--stop", "a\xFF"}, {"--stop", "UTF-8"}),
    usage("PromptAndFile", {"-f", "target/config.json"}, {"--prompt", "--file"}),
    usage("PromptTwice", {"-p", "y"}, {"--prompt"}),
};

const std::vector<BadCase> kCommands = {
    command("Nothing", {}, {"no command"}, 2),
    command("UnknownCommand", {"fly"},
            {"unknown command 'fly'; `aerie run MODEL` talks to a model"}, 2),
    command("MistypedCommand", {"generat"}, {"unknown command 'generat'; did you mean generate?"},
            2),
    command("HelpOfUnknownCommand", {"help", "fly"}, {"unknown command 'fly'"}, 2),
    usage("LayersOnOtherDevice", {"-ngl", "0", "--device", "vulkan"}, {"-ngl 0 means", "'vulkan'"}),
    usage("LayersNoNumber", {"-ngl", "many"}, {"-ngl", "'many'"}),
    usage("SecondDevice", {"-mg", "1"}, {"-mg", "--device"}),
    usage("BatchNoNumber", {"-b", "lots"}, {"-b takes a number", "'lots'"}),
    usage("BatchNoValue", {"-b", "--temp", "0"}, {"-b needs a value"}),
    usage("FlashNeither", {"--flash-attn=maybe"}, {"--flash-attn", "on, off or auto", "'maybe'"}),
    usage("JinjaValue", {"--jinja=false"}, {"--jinja takes no value"}),
    usage("CacheType", {"-ctk", "q8_0"}, {"-ctk q8_0", "f16 or f32"}),
    usage("BuiltInTemplate", {"--chat-template", "chatml"}, {"--chat-template", "--template FILE"}),
    usage("FileOfRepository", {"-hff", "x.gguf"}, {"-hff", "-hf ORG/NAME:Q4_K_M"}),
    command("BatchAtEnd", {"generate", "-p", "x", "-b"}, {"-b needs a value"}, 2),
    command("SamplingOfServe", {"serve", "--top-k", "3"}, {"--top-k", "each request"}, 2),
    command("NameOfModelAsMessage", {"chat", "aerie-tiny"}, {"'aerie-tiny'", "-m", "aerie run"}, 2),
    command("UnknownCommandLikeRun", {"rnu"}, {"did you mean run?"}, 2),
    command("UnknownCommandLikeNone", {"zzzzzzzz"}, {"aerie run MODEL"}, 2),
    command("RunNothing", {"run"}, {"run needs a model: aerie run MODEL"}, 2),
    command("SingleTurnWithoutMessage", {"chat", "--single-turn"}, {"--single-turn needs"}, 2),
    command("SlotsOfAServer", {"chat", "-np", "4"},
            {"-np is --parallel here", "chat does not have"}, 2),
    command("MessageEmpty", {"chat", ""}, {"the message is empty"}, 2),
    command("ModelAsMessage", {"chat", "absent.gguf"}, {"'absent.gguf'", "given with -m"}, 2),
    command("ShellUnknown", {"completion", "csh"}, {"bash, zsh or fish", "'csh'"}, 2),
    command("OptionBeforeCommand", {"--json", "info"},
            {"--json stands after a command, such as aerie generate --json"}, 2),
    command("PromptWithoutFlag", {"generate", "Why"}, {"unexpected argument 'Why'", "with -p"}, 2),
    command("PromptWithoutQuotes", {"generate", "-p", "Why", "is"}, {"'is'", "in quotes"}, 2),
    command("ModelWithoutFlag", {"chat", "target"}, {"'target'", "a model is given with -m"}, 2),
    command("ConversationWithoutFlag", {"render", "c.json"}, {"'c.json'", "--conversation"}, 2),
    command("ShapeWithoutFlag", {"synth", "aerie-tiny"}, {"'aerie-tiny'", "--like"}, 2),
    command("OutputWithoutFlag", {"convert", "target", "x.gguf"}, {"'x.gguf'", "with -o"}, 2),
    command("ModelTwice", {"info", "target", "-m", "target"}, {"--model is given twice"}, 2),
    command("NoValueOfModel", {"generate", "-m"},
            {"--model needs a value (see aerie generate --help)"}, 2),
    command("PromptEmpty", {"generate", "-m", "target", "-p", ""},
            {"the prompt is empty: give a text with -p"}, 2),
    command("PromptEmptyByEquals", {"generate", "-m", "target", "--prompt=", "-q"},
            {"the prompt is empty"}, 2),
    command("PromptPipeEmpty", {"generate", "-m", "target"}, {"the prompt is empty"}, 2),
    command("ComparePromptEmpty", compare_with({"-p", ""}), {"the prompt is empty"}, 2),
    command("TokenizeNothing", {"tokenize", "-m", "target"}, {"no text: give -p TEXT"}, 2),
    command("TokenizeTwoTexts", {"tokenize", "-m", "target", "-p", "x", "-f", "y"},
            {"--prompt, --file, --strings and --decode exclude each other"}, 2),
    command("BenchPrompt", {"bench", "-p", "Why"}, {"--prompt-tokens", "takes no text", "'Why'"},
            2),
    command("ModelFileMissing", {"info", "absent.gguf"}, {"'absent.gguf': no such file or folder"},
            1),
    command("ModelFileBelowMissing", {"info", "target/absent.gguf"},
            {"'target/absent.gguf': no such file or folder"}, 1),
    BadCase{.name = "ModelFileIsText",
            .says = {"text.gguf: not in GGUF format"},
            .damage = [](const ModelPair& m) { m.write("text.gguf", "Once upon a time\n"); },
            .command = {"info", "text.gguf"}},
    BadCase{.name = "ModelFileIsWebPage",
            .says = {"page.gguf: not in GGUF format, but a web page"},
            .damage = [](const ModelPair& m) { m.write("page.gguf", "<!DOCTYPE html><html>"); },
            .command = {"info", "page.gguf"}},
    command("TwoCommands", {"devices", "info"}, {"info"}, 2),
    command("LineBreakInArgument", {"generate", "--a\nb\x1b[2J"}, {"--a?b?[2J"}, 2),
    command("EightBitControlInArgument",
            {"generate",
             "--a\xC2\x9B"
             "2J\xE2\x80\xAE"},
            {"--a?2J?"}, 2),
    command("TurnedTextInModel", {"info", "x\xE2\x81\xA6y\xC2\x85"}, {"'x?y?'"}, 1),
    BadCase{.name = "CompareTokenizerLargerThanModel",
            .says = {"target: the tokenizer has", "4096 pieces", "4000"},
            .damage = [](const ModelPair& m) { m.set(kConfig, "vocab_size", "4000"); },
            .command = compare_with({"--draft", "none"})},
    tokens("TokensNoNumber", "-n", "x"),
    tokens("TokensNegative", "-n", "-2"),
    tokens("TokensFraction", "-n", "1.5"),
    tokens("TokensHexadecimal", "-n", "0x10"),
    tokens("TokensEmpty", "-n", ""),
    command("TokensEmptyAttached", {"generate", "-m", "target", "-p", "x", "--predict=", "-q"},
            {"--predict", "whole number", "''"}, 2),
    rendering("TemplateDoesNotParse", "{% for %}", {"t.jinja:1"}, 1),
    rendering("TemplateWithoutEnd",
              "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
              {"t.jinja:1"}, 1),
    rendering("TemplateRefuses", "{{ raise_exception('no system message') }}",
              {"no system message"}, 2),
    command("PromptTooLong",
            {"generate", "-m", "target", "-c", "4", "-p", "one two three four five six"},
            {"prompt", "context of 4"}, 2),
    command("PromptFileMissing", {"generate", "-m", "target", "-f", "absent.txt"},
            {"absent.txt", "No such file"}, 1),
    command("PromptFileIsFolder", {"generate", "-m", "target", "-f", "target"}, {"target"}, 1),
    command("ModelUnknown", {"info", "no-such-model"}, {"'no-such-model'", "folder"}, 1),
    command("ModelNameEmpty", {"info", "-m", ""}, {"name is empty"}, 2),
    command("ModelNotInCache", {"info", "org/name"}, {"'org/name'", "models--org--name"}, 1),
    command("ModelPathOutside", {"info", "../../absent"}, {"'../../absent'"}, 1),
    command("ModelIsFile", {"info", "target/config.json"}, {"'target/config.json'", "folder"}, 1),
    command("ModelEmptyFolder", {"info", "."}, {"no model", ".gguf", "config.json"}, 1),
    command("DeviceVulkan", {"generate", "-m", "target", "-p", "x", "--device", "vulkan:99"},
            {"vulkan:99"}, 1),
    command("CompareNoDevice", {"compare", "-m", "target"}, {"two devices"}, 2),
    command("CompareOneDevice", {"compare", "-m", "target", "--device", "cpu"}, {"two devices"}, 2),
    command("CompareDeviceUnknown",
            {"compare", "-m", "target", "--device", "cpu", "--device", "foo"}, {"foo", "cpu"}, 2),
    command("CompareNoVulkan",
            {"compare", "-m", "target", "--device", "cpu", "--device", "vulkan:99"}, {"vulkan:99"},
            2),
    command("CompareInstructionSetUnknown",
            {"compare", "-m", "target", "--device", "cpu", "--device", "cpu:sse"},
            {"cpu:sse", "portable, avx2, avxvnni, avx512 or amx"}, 2),
    command("ComparePromptAndFile", compare_with({"-p", "x", "-f", "y"}), {"--prompt", "--file"},
            2),
    command("ComparePromptFileMissing", compare_with({"-f", "absent.txt"}),
            {"absent.txt", "No such file"}, 1),
    command("ComparePromptFileIsFolder", compare_with({"-f", "target"}), {"target"}, 1),
    command("ComparePromptsNone", compare_with({"-f", "-"}), {"no prompt"}, 2),
    command("CompareTokensNegative", compare_with({"-n", "-1"}), {"--predict", "'-1'"}, 2),
    command("CompareTreeAuto", compare_with({"--tree", "auto"}), {"--tree", "'auto'"}, 2),
    command("CompareDraftChain", compare_with({"--draft", "chain"}), {"'chain'"}, 2),
    command("CompareNoHead", compare_with({"--head", "absent"}), {"'absent'"}, 1),
    command("CompareModelUnknown",
            {"compare", "--device", "cpu", "--device", "cpu", "-m", "no-such-model"},
            {"'no-such-model'"}, 1),
    command("ComparePageInNoFolder", compare_with({"--html", "absent/page.html"}),
            {"absent/page.html", "cannot be written", "No such file"}, 1),
    command("ComparePageIsFolder", compare_with({"--html", "target"}), {"target", "Is a directory"},
            1),
    BadCase{.name = "ComparePromptBeyondModel",
            .says = {"prompt", "2048"},
            .command = compare_with({"-f", "-", "--html", "page.html"}),
            .input =
                [] {
                    std::string text;
                    for (int i = 0; i < 3000; ++i) text += " word";
                    return text;
                }(),
            .exit_code = 2},
    BadCase{.name = "PromptBeyondModel",
            .says = {"prompt", "2048"},
            .command = {"generate", "-m", "target", "-f", "-"},
            .input =
                [] {
                    std::string text;
                    for (int i = 0; i < 3000; ++i) text += " word";
                    return text;
                }(),
            .exit_code = 2},
    BadCase{.name = "PromptBeyondContext5MB",
            .says = {"5242881 tokens", "no room"},
            .command = {"generate", "-m", "target"},
            .input = std::string(5 << 20, 'a'),
            .exit_code = 2},
    command("DeviceUnknown", {"info", "target", "--device", "foo"}, {"foo", "cpu"}, 1),
};

const std::vector<BadCase> kVariables = {
    variable("Isa", "AERIE_CPU_ISA", "nonsense", 1),
    variable("ThreadsWord", "AERIE_THREADS", "abc", 2),
    variable("ThreadsNegative", "AERIE_THREADS", "-3", 2),
    BadCase{.name = "Model",
            .says = {"'absent-model'"},
            .command = {"generate", "-p", "x"},
            .variables = {{"AERIE_MODEL", "absent-model"}}},
    BadCase{
        .name = "Head", .says = {"'absent-head'"}, .variables = {{"AERIE_HEAD", "absent-head"}}},
    BadCase{.name = "Device", .says = {"no-device"}, .variables = {{"AERIE_DEVICE", "no-device"}}},
};

}  // namespace

}  // namespace aerie::test

AERIE_BAD_INPUT(Usage, kUsage)
AERIE_BAD_INPUT(Command, kCommands)
AERIE_BAD_INPUT(Variable, kVariables)
