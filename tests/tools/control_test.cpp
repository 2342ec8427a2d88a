// Control characters that a terminal or a page would obey: in generated text, in names of files and
// on pages.
#include <cstring>

#include "core/utf8.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/pty.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstByteToken = 3;  // <0x00> in the bundled vocabulary
constexpr const char* kShownInPlace = "\xEF\xBF\xBD";

// The bundled model with an LM head that chooses nothing but ESC or BEL.
fs::path model_of_controls(const TestFolder& folder) {
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny");
    for (Stored& tensor : tensors) {
        if (tensor.name != "lm_head.weight") continue;
        std::fill(tensor.data.begin(), tensor.data.end(), '\0');
        const size_t columns = size_t(tensor.shape[1]);
        const auto fill_row = [&](size_t row, uint16_t half) {
            for (size_t i = row * columns; i < (row + 1) * columns; ++i)
                std::memcpy(&tensor.data[2 * i], &half, 2);
        };
        fill_row(kFirstByteToken + 0x1B, 0x3C00);  // 1: one of the two logits is above 0
        fill_row(kFirstByteToken + 0x07, 0xBC00);  // -1
    }
    write_file(model / "model.safetensors", safetensors_of(tensors));
    return model;
}

// Whether a text has control characters other than line breaks.
bool has_controls(const std::string& text) {
    for (std::string_view rest = text; !rest.empty();)
        if (const char32_t code = take_char(rest); is_control(code) && code != '\n' && code != '\r')
            return true;
    return false;
}

using Controls = NeedsPty;

TEST_F(Controls, OfGeneratedTextReachFilesButNoTerminal) {
    const TestFolder folder;
    const std::vector<std::string> command = {
        "generate", "-m", model_of_controls(folder), "--draft", "none", "-p", "x", "-n", "3", "-q"};
    const Outcome piped = run(command);
    ASSERT_EQ(piped.out.size(), 4u) << piped.err;
    EXPECT_EQ(piped.out.find_first_not_of("\x1b\a"), 3u) << "every byte as it is";
    const Json json = Json::parse(run(with(command, {"--json"})).out, "stdout");
    EXPECT_EQ(text_of(json) + "\n", piped.out);
    for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--json"}}) {
        Pty terminal;
        EXPECT_EQ(
            run(with(command, flags), {.before = [&] { terminal.serve(STDOUT_FILENO); }}).exit_code,
            0);
        EXPECT_FALSE(has_controls(terminal.text())) << Json(terminal.text()).dump();
        EXPECT_EQ(terminal.text().starts_with(kShownInPlace), flags.empty());
    }
}

TEST_F(Controls, OfNamesReachNeitherTerminalNorPage) {
    const TestFolder folder;
    const std::string name =
        "m\x1b]0;x\x07\xC2\x9B"
        "2J\xE2\x80\xAE\xE2\x81\xA9";
    fs::create_directory_symlink(models_dir() / "aerie-tiny", folder.path() / name);
    const std::string model = (folder.path() / name).string();
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"info", "-m", model},
          {"compare", "-m", model, "--device", "cpu", "--device", "cpu", "--draft", "none", "-n",
           "1", "-p", "\x1b[2J", "--html", (folder.path() / "page.html").string()}}) {
        Pty terminal;
        const Outcome outcome =
            run(with(command, {}), {.before = [&] { terminal.serve(STDOUT_FILENO); }});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_FALSE(has_controls(terminal.text())) << Json(terminal.text()).dump();
        EXPECT_NE(terminal.text().find(kShownInPlace), std::string::npos);
    }
    const std::string page = read_text(folder.path() / "page.html", 1 << 24);
    EXPECT_FALSE(has_controls(page));
    EXPECT_NE(page.find(kShownInPlace), std::string::npos);
}

TEST_F(Controls, OfProgressReachNoTerminal) {
    const TestFolder folder;
    fs::create_directory_symlink(models_dir() / "aerie-tiny", folder.path() / "m\x1b]0;x\x07");
    Pty terminal;
    run({"generate", "-m", (folder.path() / "m\x1b]0;x\x07").string(), "--draft", "none", "-p", "x",
         "-n", "1"},
        {.before = [&] { terminal.serve(STDERR_FILENO); }});
    EXPECT_NE(terminal.text().find("m?]0;x?"), std::string::npos) << Json(terminal.text()).dump();
    EXPECT_EQ(terminal.text().find("\x1b]"), std::string::npos);
}

}  // namespace
}  // namespace aerie::test
