// Texts to learn from, in one file that is only ever appended to: a killed program loses at most
// the line that it was writing.
//
// Each line is {"id": "p1", "kind": "code", "ids": [1, 2, 3], "mask": "001"}: the name of the
// prompt, its kind, token ids, and for each whether it belongs to an answer. The first line is
// {"schema": "aerie-texts-1", "model": NAME}.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "train/batch.h"

namespace aerie::train {

class TextFile {
  public:
    // Opens or creates the file. `model` says whose token ids these are, and must be that of the
    // file. Cuts off a last line that is not whole. Throws Error naming file and line.
    TextFile(const std::filesystem::path& path, const std::string& model, int vocab);

    const TrainingTexts& texts() const { return texts_; }
    const std::string& id(size_t text) const { return names_[text]; }
    const std::string& kind(size_t text) const { return kinds_[text]; }  // may be empty
    bool has(const std::string& id) const { return ids_.contains(id); }
    // Throws Error if the disk is full; the file is then as before.
    void append(const std::string& id, const std::string& kind, const std::vector<int>& tokens,
                const std::vector<bool>& mask);
    // Drops all texts but the last `count`, and returns how many were dropped. Throws Error; the
    // file is then as before.
    size_t keep_newest(size_t count);

  private:
    std::string header() const;
    void read_line(const std::string& line, int number);
    void write(const std::string& line);
    void add(const std::string& id, const std::string& kind, std::vector<int> tokens,
             std::vector<bool> mask);

    std::filesystem::path path_;
    std::string model_;
    int vocab_;
    TrainingTexts texts_;
    std::vector<std::string> names_, kinds_;  // by text
    std::set<std::string> ids_;
};

}  // namespace aerie::train
