// The ways in which byte-level vocabularies write bytes, each as one printable character (GPT-2's
// table), and SentencePiece's byte tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aerie {

// The character of a byte: printable ones of Latin-1 stand for themselves, the others follow from
// U+0100 on in ascending order.
char32_t character_of_byte(uint8_t byte);

// The bytes that a token of such a vocabulary stands for; nullopt if the table lacks a character.
// `token` is well-formed UTF-8.
std::optional<std::string> bytes_of_token(std::string_view token);

// The byte of a token such as "<0x0A>", SentencePiece's for byte 10 (two upper-case digits). -1: it
// is no such token.
int byte_of_token(std::string_view token);
std::string byte_token(uint8_t byte);

}  // namespace aerie
