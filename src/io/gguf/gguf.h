// A model in GGUF: one file, or several pieces of it that lie side by side.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/gguf/file.h"
#include "io/input_file.h"

namespace aerie {

class Gguf {
  public:
    // If the name ends in -00002-of-00003.gguf, all three pieces are opened, through links if they
    // are links; the metadata is that of the first piece. split.no, split.count and
    // split.tensors.count must show that the pieces belong together. Refuses what read_gguf
    // refuses, more than 512 pieces, and a tensor that is in two pieces. Throws Error naming the
    // file.
    static Gguf open(const std::filesystem::path& path);

    const GgufMetadata& metadata() const { return metadata_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; }  // piece by piece
    const GgufTensor* find(const std::string& name) const;               // nullptr if absent
    size_t pieces() const { return pieces_.size(); }
    size_t size_bytes() const;                    // bytes of all tensor data
    std::vector<const InputFile*> files() const;  // piece by piece

    // Reads bytes of a tensor, from byte `from` of it on; from + out.size() <= data.size_bytes.
    // Throws Error if the file has become shorter.
    void read(const GgufTensor& tensor, size_t from, std::span<std::byte> out) const;
    // Decodes some rows to f32; out.size() is rows * row_elements(). Throws Error naming the
    // tensor, also if its type holds no weights.
    void read_rows(const GgufTensor& tensor, int64_t first_row, std::span<float> out) const;

    // "folder/m.gguf: tensor 'name'", for errors.
    std::string describe(const GgufTensor& tensor) const;

  private:
    struct Piece {
        std::string file;  // for errors
        std::unique_ptr<const InputFile> bytes;
    };
    // Opens a piece and adds its tensors; returns its metadata.
    GgufMetadata add_piece(const std::filesystem::path& path);

    GgufMetadata metadata_;
    std::vector<GgufTensor> tensors_;
    std::unordered_map<std::string, size_t> index_;  // name -> index in tensors_
    std::vector<Piece> pieces_;
};

}  // namespace aerie
