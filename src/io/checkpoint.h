// All tensors of a model folder, whatever files they lie in.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/model_folder.h"
#include "io/tensor_file.h"

namespace aerie {

// Bytes of tensor data per type, keyed by the name that the file format has for the type.
using FileTypes = std::map<std::string, size_t>;

// Rows that are read as groups of `to`, where the stored tensor has groups of `from`: rows of zeros
// are added behind each group, or with `by_halves` behind each half of a group.
struct SpreadRows {
    int from = 0, to = 0;
    bool by_halves = false;
};

class Checkpoint {
  public:
    // Looks for model.safetensors, model.safetensors.index.json, pytorch_model.bin,
    // pytorch_model.bin.index.json, the files of Medusa and Hydra, in this order. A shard name must
    // be one plain file name; a symlink may leave the folder only as the Hugging Face cache's do
    // (../../blobs). A tensor found twice, or listed in the index and absent from its shard, is
    // refused. Throws Error.
    static Checkpoint open(const std::filesystem::path& folder);
    // Whether the folder has one of these files.
    static bool is_in(const std::filesystem::path& folder);

    // A checkpoint of tensors that are computed when they are read: `fill` does the work of `read`.
    // `name` stands for the folder.
    using Fill =
        std::function<void(const NamedTensor&, DType as, size_t first, std::span<std::byte> out)>;
    // `files`: the files that `fill` reads and keeps open.
    // `name_in_file`: for errors, the name that a tensor has in these files, "" if it has none;
    // may be empty.
    using NameInFile = std::function<std::string(const std::string&)>;
    static Checkpoint generated(const std::string& name, std::vector<NamedTensor> tensors,
                                Fill fill, FileTypes types = {},
                                std::vector<const InputFile*> files = {},
                                NameInFile name_in_file = {});

    // Renames a tensor. Does nothing and returns false if `from` does not exist, `to` does, or the
    // checkpoint is a generated one.
    bool rename(const std::string& from, const std::string& to);

    // Adds rows of zeros to the tensor from now on; it must exist and have whole groups.
    void spread_rows(const std::string& name, const SpreadRows& rows);
    bool is_spread(const std::string& name) const { return spread_.contains(name); }

    const NamedTensor* find(const std::string& name) const;  // nullptr if absent
    // The tensor, which must have this shape and a type of weights. Throws Error naming file,
    // tensor and shapes otherwise.
    const NamedTensor& get(const std::string& name, std::span<const int64_t> shape) const;
    // From now on quantised tensors of types that `can_store` rejects are read as Q8_0.
    void replace_unstorable(const std::function<bool(DType)>& can_store);

    // Reads whole rows of a tensor, from element `first` on. `as` is the tensor's type; for a
    // quantised tensor it can also be the type in the file, Q8_0 or F32. Several threads may read
    // at once. Throws Error naming the file if it has become shorter.
    void read(const NamedTensor& tensor, DType as, size_t first, std::span<std::byte> out) const;
    // Compares the checksum and reads the whole tensor into memory of its own.
    std::unique_ptr<std::byte[]> read(const NamedTensor& tensor) const;
    // Throws Error naming the file if the tensor has a checksum that differs.
    void check(const NamedTensor& tensor) const;

    // "folder/model.safetensors: tensor 'name'", for errors.
    std::string describe(const NamedTensor& tensor) const;

    // Called by the thread that loads, with the bytes of tensors that a device has taken; may be
    // empty.
    std::function<void(size_t)> on_loaded;

    const std::map<std::string, NamedTensor>& tensors() const { return tensors_; }
    const std::filesystem::path& folder() const { return folder_; }
    FileTypes file_types() const;
    std::string type_names() const;               // "f16", "q4_k, q6_k": those of file_types()
    size_t parameters() const;                    // numbers in all tensors
    std::vector<const InputFile*> files() const;  // files that hold tensor data, if any
    size_t size_bytes() const;  // bytes of all tensors, in the types in which they are read

  private:
    struct File {
        std::string name;
        std::unique_ptr<const InputFile> bytes;
    };
    // A tensor's name in quotes, for errors: as the files have it.
    std::string shown(const std::string& name) const;
    const InputFile& file_of(const NamedTensor& tensor) const;
    // Reads rows as they are stored, before spread_rows.
    void read_stored(const NamedTensor& tensor, DType as, size_t first,
                     std::span<std::byte> out) const;
    void read_spread(const NamedTensor& tensor, const SpreadRows& rows, DType as, size_t first,
                     std::span<std::byte> out) const;
    using Reader = std::vector<NamedTensor>(const ByteSource&, const std::string& file);
    std::vector<NamedTensor> read_file(const std::string& name, Reader* read);
    void read_shards(const std::string& index, Reader* read);
    void add(NamedTensor tensor);  // a tensor of the file that was read last

    std::filesystem::path folder_;
    std::vector<File> files_;
    std::map<std::string, NamedTensor> tensors_;
    std::map<std::string, size_t> file_of_;  // tensor name -> index in files_
    std::map<std::string, SpreadRows> spread_;
    Fill fill_;                              // empty: the data is in the files
    std::vector<const InputFile*> made_of_;  // files that fill_ reads
    NameInFile name_in_file_;
    FileTypes file_types_;  // empty: the types of tensors_
};

}  // namespace aerie
