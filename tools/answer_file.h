// The answers to many prompts, schema aerie-answers-1: a line of JSON for each prompt, on stdout or
// in a file, which a later run of the same command goes on with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/platform.h"
#include "io/json.h"
#include "text/prompt_file.h"

namespace aerie {

class AnswerFile {
  public:
    // Opens or makes the file (no path, or "-": stdout) and takes over what a former run left: its
    // answers are kept, a line that it could not finish is cut off, and prompts whose line is an
    // error are asked again. `asked` names the file of the prompts. Throws Error; UsageError if the
    // file has anything else in it, or if another aerie writes to it.
    AnswerFile(const std::optional<std::string>& path, const std::string& asked,
               const std::vector<PromptLine>& prompts);

    // Indices of the prompts that have no answer yet.
    const std::vector<size_t>& unanswered() const { return unanswered_; }
    size_t added() const { return added_; }  // lines of this run
    const std::string& path() const { return path_; }
    std::optional<uint64_t> seed() const;  // with which the answers of the former run were drawn
    // Must be called before add(), with all that the answers depend on besides the prompts. Throws
    // UsageError if the former run had other settings.
    void set_settings(Json settings);
    // Takes the line of a prompt: what it says besides schema and settings. A file has it at once;
    // on stdout it waits for the lines of the prompts before. Throws OutputError.
    void add(size_t prompt, const Json::Object& line);
    // Puts the lines of a file into the order of their prompts, one for each; on stdout those that
    // waited come out. Throws Error.
    void finish();

  private:
    void read(const std::string& text, const std::string& asked,
              const std::vector<PromptLine>& prompts);
    void write(const std::string& line);

    std::string path_;  // empty: stdout
    platform::Handle file_;
    bool is_regular_ = false;
    bool is_in_order_ = true;  // the lines of the file are lines_, in this order
    std::vector<size_t> unanswered_;
    std::map<size_t, std::string> lines_;  // by prompt; on stdout those that wait
    Json settings_;                        // null: not known yet
    size_t added_ = 0, printed_ = 0;       // printed_: of unanswered(), on stdout
};

}  // namespace aerie
