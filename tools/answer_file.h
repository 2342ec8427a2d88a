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
    // Opens or makes the file, if there is a path, and takes over what a former run left: its
    // answers are kept, a line that it could not finish is cut off, and prompts whose line is an
    // error are asked again. The prompts are those of the file `asked`. Throws Error; UsageError if
    // the file has anything else in it, or if another program writes to it.
    AnswerFile(const std::optional<std::string>& path, const std::string& asked,
               const std::vector<PromptLine>& prompts);

    // Numbers of the prompts that wait for an answer, in their order.
    const std::vector<size_t>& unanswered() const { return unanswered_; }
    size_t written() const { return next_; }  // how many of unanswered() have their line
    std::optional<uint64_t> seed() const;     // with which the answers of the former run were drawn
    // Must be called before add(), with all that the answers depend on besides the prompts. Throws
    // UsageError if the former run had other settings.
    void set_settings(Json settings);
    // Takes the line of unanswered()[place]: what the line says besides schema and settings. Lines
    // come in any order; each is written once all before it are. Throws OutputError.
    void add(size_t place, const Json::Object& line);

  private:
    void read(const std::string& text, const std::string& asked,
              const std::vector<PromptLine>& prompts);
    void write(const std::string& id, const std::string& line);

    std::string path_;  // empty: stdout
    platform::Handle file_;
    std::vector<size_t> unanswered_;
    std::vector<std::string> ids_;               // one for each prompt
    std::map<std::string, std::string> errors_;  // the last line of an id, where it is an error
    Json settings_;                              // null: not known yet
    std::map<size_t, std::string> waiting_;
    size_t next_ = 0;
};

}  // namespace aerie
